// Table 3 of Peters et al. (2018): where ELMo is added, on dev. Each training sees a tenth of the
// data.
local paths = import '../lib/paths.libsonnet';

local row(name, metric, corpus, elmo, papers) = {
  name: name,
  metric: metric,
  evaluate: corpus.dev,
  columns: [
    { name: 'input', experiment: elmo, settings: { elmo+: { at: 'input' } }, paper: papers[0] },
    { name: 'both', experiment: elmo, settings: { elmo+: { at: 'both' } }, paper: papers[1] },
    { name: 'output', experiment: elmo, settings: { elmo+: { at: 'output' } }, paper: papers[2] },
  ],
};

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Table 3: ELMo at the input, at the output, at both, on dev',
    fractions: [0.1],
    rows: [
      row('SQuAD', 'f1', paths.squad, import '../squad_elmo.jsonnet', [85.1, 85.6, 84.8])
      { settings: { num_epochs: 6, patience: 2 } },
      row('SNLI', 'accuracy', paths.snli, import '../snli_elmo.jsonnet', [88.9, 89.5, 88.7])
      { settings: { num_epochs: 8, patience: 3 } },
      row('SRL', 'f1-measure-overall', paths.srl, import '../srl_elmo.jsonnet', [84.7, 84.3, 80.9])
      { settings: { num_epochs: 10, patience: 3, mixed_precision: true } },
    ],
  },
}
