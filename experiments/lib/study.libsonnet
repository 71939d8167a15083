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

local expect(where, name, value, is_right, what) =
  assert is_right : 'study: %s: `%s` should be %s, found %s' % [where, name, what, std.manifestJsonMinified(value)];
  value;
local string(where, name, value) = expect(where, name, value, std.isString(value), 'a string');
local flag(where, name, value) = expect(where, name, value, std.isBoolean(value), 'true or false');
local is_whole(value) = std.isNumber(value) && value == std.floor(value);

// The given settings over the `known` ones, of which there are no others.
local checked(what, given, known) =
  local unknown = std.setDiff(std.objectFields(given), std.objectFields(known));
  assert unknown == [] : 'study: %s has no such settings: %s; there are %s'
                         % [what, std.join(', ', unknown), std.join(', ', std.objectFields(known))];
  known + given;

local repeated(values) =
  std.join(', ', [std.toString(value) for value in std.set(values) if std.count(values, value) > 1]);
local once(where, name, values) =
  assert repeated(values) == '' :
         'study: %s: expected each of `%s` once, found %s several times' % [where, name, repeated(values)];
  values;
local differently_named(parts) =
  local found = repeated([part.name for part in parts]);
  assert found == '' :
         'study: expected different names of rows and of the columns of a row, found %s several times' % found;
  parts;

{
  settings:: defaults,  // hidden from the command
  local s = checked('a study', $.settings, defaults),
  local rows = [
    local name = 'row ' + std.get(row, 'name', 'without a name');
    local known = checked(name, row, row_defaults { seeds: s.seeds, fractions: s.fractions });
    assert std.isArray(known.seeds) && std.isArray(known.fractions) :
           'study: %s: seeds and fractions should be lists' % name;
    known {
      seeds: once(name, 'seeds', [
        expect(name, 'seeds', seed, is_whole(seed), 'whole numbers')
        for seed in known.seeds
      ]),
      fractions: once(name, 'fractions', [
        expect(name, 'fractions', fraction, std.isNumber(fraction), 'numbers')
        for fraction in known.fractions
      ]),
    }
    for row in s.rows
  ],
  local settings(row, fraction) =
    if std.isFunction(row.settings) then row.settings(fraction) else row.settings,
  local columns(row) = [checked('a column of row ' + row.name, column, column_defaults) for column in row.columns],

  local checked_column(row, column) =
    local where = 'row %s, column %s' % [row.name, column.name];
    local others = [other.name for other in columns(row) if other.name != column.name];
    {
      name: string(where, 'name', column.name),
      metric: string(where, 'metric', if column.metric == null then row.metric else column.metric),
      paper: expect(where, 'paper', column.paper, column.paper == null || std.isNumber(column.paper), 'a number or null'),
      against: expect(
        where, 'against', column.against,
        std.member([null] + others, column.against),
        'null or one of ' + std.join(', ', others)
      ),
    },
  local checked_row(row) =
    local where = 'row ' + row.name;
    local n = row.num_baselines;
    local num_columns = std.length(row.columns);
    {
      name: string(where, 'name', row.name),
      percent: flag(where, 'percent', row.percent),
      lower_is_better: flag(where, 'lower_is_better', row.lower_is_better),
      compare: flag(where, 'compare', row.compare),
      num_baselines: expect(
        where, 'num_baselines', n,
        is_whole(n) && n >= 1 && n <= num_columns,
        'a whole number from 1 to %d, the number of its columns' % num_columns
      ),
      columns: differently_named([checked_column(row, column) for column in columns(row)]),
    },

  title: string('a study', 'title', s.title),
  rows: differently_named([checked_row(row) for row in rows]),
  runs: assert std.length(runs) > 0 : 'study: expected runs, found none';
        runs,
  local runs = [
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
