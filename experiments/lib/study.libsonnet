// A study: experiments that are trained with several seeds, and compared in a table or a plot.
//
//   (import '../lib/study.libsonnet') {
//     settings+: {
//       title: 'Named entities with and without ELMo',
//       seeds: [1, 2, 3],
//       rows: [{
//         name: 'NER',
//         metric: 'f1-measure-overall',
//         evaluate: paths.ner.test,
//         columns: [
//           { name: 'baseline', experiment: import '../ner.jsonnet', paper: 90.15 },
//           { name: 'ELMo', experiment: import '../ner_elmo.jsonnet', paper: 92.22 },
//         ],
//       }],
//     },
//   }
//
// The first column is the baseline, with which the others are compared; a column with `against` is
// compared with the column of that name instead. A row may have its own `seeds` and `fractions`. A
// row and a column may have `settings`, changes of the experiment's settings: `{ elmo+: {…} }`.
// In a row, they may be a function of the fraction of training data.

local defaults = {
  title: error 'study: set settings.title',
  rows: error 'study: set settings.rows to a list of { name, metric, columns }',
  seeds: [1, 2, 3],
  fractions: [1],  // of the training data
};

local row_defaults = {
  name: error 'study: a row has no name',
  metric: error 'study: row ' + self.name + ' has no metric',
  // The corpus on which `allennlp evaluate` computes the metric. Null: the metric is read from the
  // metrics.json of the training.
  evaluate: null,
  columns: error 'study: row ' + self.name + ' has no columns',
  percent: true,  // the metric is a fraction, shown as a percentage
  lower_is_better: false,
  compare: true,  // the columns with the baseline
  num_baselines: 1,  // the first columns; others are compared with the best of them on dev
  settings: {},
};

local column_defaults = {
  name: error 'study: a column has no name',
  experiment: error 'study: column ' + self.name + ' has no experiment',
  settings: {},
  metric: null,  // instead of the row's
  // The paper's score as printed: in percent if the row's `percent` is true, else in the unit of
  // the metric.
  paper: null,
  against: null,  // the name of the column to compare it with; null: the baseline
};

local checked(what, given, known) =
  local unknown = std.setDiff(std.objectFields(given), std.objectFields(known));
  assert unknown == [] : 'study: %s has no such settings: %s' % [what, std.join(', ', unknown)];
  known + given;

{
  settings:: defaults,  // hidden from the command
  local s = checked('a study', $.settings, defaults),
  local rows = [
    local name = 'row ' + std.get(row, 'name', 'without a name');
    local known = checked(name, row, row_defaults { seeds: s.seeds, fractions: s.fractions });
    assert std.isArray(known.seeds) && std.isArray(known.fractions) :
           'study: %s: seeds and fractions should be lists' % name;
    known
    for row in s.rows
  ],
  local settings(row, fraction) =
    if std.isFunction(row.settings) then row.settings(fraction) else row.settings,
  local columns(row) = [checked('a column of row ' + row.name, column, column_defaults) for column in row.columns],

  title: s.title,
  rows: [
    {
      name: row.name,
      percent: row.percent,
      lower_is_better: row.lower_is_better,
      compare: row.compare,
      num_baselines: row.num_baselines,
      columns: [
        {
          name: column.name,
          metric: if column.metric == null then row.metric else column.metric,
          paper: column.paper,
          against: column.against,
        }
        for column in columns(row)
      ],
    }
    for row in rows
  ],
  runs: [
    {
      row: row.name,
      column: column.name,
      fraction: fraction,
      seed: seed,
      evaluate: row.evaluate,
      experiment: assert std.objectHasAll(column.experiment, 'settings') :
                          'study: column %s: its experiment has no `settings`, as those in experiments/ have'
                          % column.name;
                  column.experiment {
        settings+: settings(row, fraction) + column.settings + {
          random_seed: seed,
          [if fraction != 1 then 'fraction']: fraction,
        },
      },
    }
    for row in rows
    // All columns of one seed before the next seed, so that a stopped study can be compared.
    for seed in row.seeds
    for fraction in row.fractions
    for column in columns(row)
  ],
}
