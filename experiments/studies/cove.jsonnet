// Section 5.1 of Peters et al. (2018): CoVe and ELMo in the same models, on test (the paper: SNLI
// and SRL on dev). CoVe is the encoder in ELMO_COVE. CoVe is at the input of the task's encoder,
// ELMo there only or also at the output. Word vectors are fixed, although trained ones are better
// in SNLI without ELMo (table1.jsonnet). Words without a vector have random ones or, with CoVe,
// zeros, the input of its encoder. All models have the regularisation of those with ELMo. Epochs,
// patience and share of the data: training.libsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';
local training = import 'training.libsonnet';

local columns(baseline, elmo) = [
  { name: 'baseline', experiment: baseline },
  { name: 'CoVe', experiment: baseline, settings: { words: [words.cove()] } },
  {
    name: 'ELMo, input',
    experiment: elmo,
    settings: { elmo+: { at: 'input' } },
    against: 'CoVe',
  },
  { name: 'ELMo', experiment: elmo, against: 'ELMo, input' },
  {
    name: 'ELMo and CoVe',
    experiment: elmo,
    settings: { words: [words.cove()] },
    against: 'ELMo',
  },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'CoVe and ELMo',
    rows: [
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet'),
      } + training.long.snli { settings+: elmo_regularisation.snli },
      {
        name: 'SST',
        metric: 'accuracy',
        evaluate: paths.sst.test,
        columns: columns(import '../sst.jsonnet', import '../sst_elmo.jsonnet'),
      } + training.long.sst { settings+: elmo_regularisation.sst },
    ],
  },
}
