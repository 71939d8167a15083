// How much of ELMo's gain remains when the static word vectors are wider, on test: the vectors of
// ELMO_GLOVE and of ELMO_WIDE, trained on the same text (docs/studies.md), with and without ELMo.
// Wider vectors also give the BiLSTM that reads them more parameters. NER has fixed word vectors and
// SNLI trained ones, because they gave a better score without ELMo (table1.jsonnet). In SNLI only the
// models with ELMo have their stronger regularisation, because the baseline is better without it.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local training = import 'training.libsonnet';

local columns(baseline, elmo, trainable) =
  local vectors = { words: words.with_trainable(super.words, trainable) };
  local wide = vectors + { words: words.with_wide_vectors(super.words) };
  [
    { name: 'baseline', experiment: baseline, settings: vectors },
    { name: 'wider vectors', experiment: baseline, settings: wide },
    { name: 'ELMo', experiment: elmo, settings: vectors, against: 'wider vectors' },
    {
      name: 'wider vectors and ELMo',
      experiment: elmo,
      settings: wide,
      against: 'wider vectors',
    },
  ];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Wider word vectors, and ELMo',
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.test,
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet', trainable=false),
      } + training.long.ner,
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet', trainable=true),
      } + training.long.snli,
    ],
  },
}
