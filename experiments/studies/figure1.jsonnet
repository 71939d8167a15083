// Figure 1 of Peters et al. (2018): scores over the share of the training data, on dev.
local paths = import '../lib/paths.libsonnet';
local same = import 'same.libsonnet';

local columns(baseline, elmo) = [
  { name: 'baseline', experiment: baseline },
  { name: 'ELMo', experiment: elmo },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Figure 1: with less training data, on dev',
    fractions: [0.001, 0.01, 0.03, 0.1, 0.3, 1],
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.dev,
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet'),
        settings: { num_epochs: 25, patience: 5 },
      },
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.dev,
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet'),
        settings: same.snli { num_epochs: 10, patience: 3 },
      },
      {
        name: 'SRL',
        metric: 'f1-measure-overall',
        evaluate: paths.srl.dev,
        columns: columns(import '../srl.jsonnet', import '../srl_elmo.jsonnet'),
        settings: { num_epochs: 15, patience: 3, mixed_precision: true },
      },
    ],
  },
}
