// What a better biLM brings: the shipped biLM, and bilm_medium.jsonnet, which has a perplexity of
// 57 instead of 78 and layers twice as wide; $ELMO_DATA/bilm/medium has its files. NER has fixed
// word vectors, as in figure1.jsonnet. The baseline of SNLI has trained ones, as in table2.jsonnet,
// and the models with ELMo fixed ones and stronger regularisation. SST has the best baseline and
// the best model with ELMo of table1.jsonnet, on test; the others are on dev. Epochs, patience and
// share of the data: training.libsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';
local training = import 'training.libsonnet';

local columns(baseline, elmo, of_baseline={}) = [
  { name: 'baseline', experiment: baseline, settings: of_baseline },
  { name: 'small biLM', experiment: elmo },
  {
    name: 'medium biLM',
    experiment: elmo,
    settings: { elmo+: paths.other_bilm('medium') },
    against: 'small biLM',
  },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'A better biLM',
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.dev,
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet'),
      } + training.long.ner { settings+: { words: words.with_trainable(super.words, false) } },
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.dev,
        columns: columns(
          import '../snli.jsonnet',
          import '../snli_elmo.jsonnet',
          { words: words.with_trainable(super.words, true) }
        ),
      } + training.short.snli,
      {
        name: 'SST, test',
        metric: 'accuracy',
        evaluate: paths.sst.test,
        columns: columns(
          import '../sst.jsonnet',
          import '../sst_elmo.jsonnet',
          elmo_regularisation.sst
        ),
        seeds: [1, 2, 3, 4, 5],
      } + training.long.sst { settings+: { words: words.with_trainable(super.words, true) } },
    ],
  },
}
