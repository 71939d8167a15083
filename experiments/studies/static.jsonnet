// How much of ELMo's gain remains when the static word vectors are wider, on test: the vectors of
// ELMO_GLOVE and of ELMO_WIDE, trained on the same text (docs/studies.md), with and without ELMo.
// Wider vectors also give the BiLSTM that reads them more parameters, and their file has more
// words. NER has fixed word vectors and SNLI trained ones, because they gave a better score without
// ELMo (table1.jsonnet). All models of SNLI have the regularisation of the baseline, as the best
// model with ELMo of table1.jsonnet has. Epochs, patience and share of the data:
// training.libsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';
local training = import 'training.libsonnet';

local columns(baseline, elmo, trainable, of_elmo={}) =
  local vectors = { words: words.with_trainable(super.words, trainable) };
  local wide = vectors + { words: words.with_wide_vectors(super.words) };
  [
    { name: 'baseline', experiment: baseline, settings: vectors },
    { name: 'wider vectors', experiment: baseline, settings: wide },
    { name: 'ELMo', experiment: elmo, settings: vectors + of_elmo, against: 'wider vectors' },
    {
      name: 'wider vectors and ELMo',
      experiment: elmo,
      settings: wide + of_elmo,
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
        columns: columns(
          import '../snli.jsonnet',
          import '../snli_elmo.jsonnet',
          trainable=true,
          of_elmo=elmo_regularisation.without_snli
        ),
      } + training.long.snli,
    ],
  },
}
