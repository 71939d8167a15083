// Table 3 of Peters et al. (2018): where ELMo is added, on dev. The models are trained on a tenth
// of the data, SRL's on three tenths. The first 2,000 of SQuAD's 10,570 questions choose its
// best epoch.
local paths = import '../lib/paths.libsonnet';
local training = import 'training.libsonnet';

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
    rows: [
      row('SQuAD', 'f1', paths.squad, import '../squad_elmo.jsonnet', [85.1, 85.6, 84.8])
      + training.short.squad,
      row('SNLI', 'accuracy', paths.snli, import '../snli_elmo.jsonnet', [88.9, 89.5, 88.7])
      + training.short.snli,
      row('SRL', 'f1-measure-overall', paths.srl, import '../srl_elmo.jsonnet', [84.7, 84.3, 80.9])
      + training.short.srl,
    ],
  },
}
