// What a task loses with fewer layers of the biLM, on dev: the token layer alone is a character CNN
// without context. The biLM of one LSTM layer is that of ablations/bilm_small_one_layer.jsonnet,
// trained for the same time (docs/studies.md).
local paths = import '../lib/paths.libsonnet';
local same = import 'same.libsonnet';

local columns(baseline, elmo) = [
  { name: 'baseline', experiment: baseline },
  { name: 'token layer', experiment: elmo, settings: { elmo+: { layers: [0] } } },
  { name: 'layer 1', experiment: elmo, settings: { elmo+: { layers: [1] } } },
  { name: 'layer 2', experiment: elmo, settings: { elmo+: { layers: [2] } } },
  { name: 'all', experiment: elmo },
  { name: 'biLM of one layer', experiment: elmo, settings: { elmo+: paths.other_bilm('one_layer') } },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'One layer or all, on dev',
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.dev,
        settings: { num_epochs: 15, patience: 4 },
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet'),
      },
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.dev,
        fractions: [0.2],
        settings: same.snli { num_epochs: 8, patience: 3 },
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet'),
      },
    ],
  },
}
