// How much of ELMo's gain remains when the static word vectors are wider, on test: the vectors of
// ELMO_GLOVE and of ELMO_WIDE, trained on the same text (docs/studies.md), with and without ELMo.
// Wider vectors also give the BiLSTM that reads them more parameters.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local same = import 'same.libsonnet';
local training = import 'training.libsonnet';

local wide = { words: words.with_wide_vectors(super.words) };
local columns(baseline, elmo) = [
  { name: 'baseline', experiment: baseline },
  { name: 'wider vectors', experiment: baseline, settings: wide },
  { name: 'ELMo', experiment: elmo },
  { name: 'wider vectors and ELMo', experiment: elmo, settings: wide },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Wider word vectors, and ELMo',
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.test,
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet'),
      } + training.long.ner,
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet'),
      } + training.long.snli { settings+: same.snli },
    ],
  },
}
