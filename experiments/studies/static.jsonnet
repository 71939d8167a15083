// What is left of the gain when the static word vectors are wider, on test: vectors of ELMO_GLOVE
// and those of ELMO_WIDE, trained on the same text (docs/studies.md), without ELMo and with it.
// A BiLSTM reads them, so wider vectors give it more parameters, too.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local same = import 'same.libsonnet';

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
        settings: { num_epochs: 25, patience: 5 },
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet'),
      },
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        fractions: [0.2],
        settings: same.snli { num_epochs: 8, patience: 3 },
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet'),
      },
    ],
  },
}
