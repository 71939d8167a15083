// ELMo from a single layer of the biLM against all layers, on dev; the token layer is a character
// CNN without context. TagLM (Peters et al. 2017) has the last layer between the two BiLSTMs
// instead of at the input. The biLM of one LSTM layer is ablations/bilm_small_one_layer.jsonnet,
// trained on as much text. NER has fixed word vectors, as in figure1.jsonnet. The baseline of SNLI
// has trained ones, as in table2.jsonnet, and the models with ELMo fixed ones and stronger
// regularisation. Epochs, patience and share of the data: training.libsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local training = import 'training.libsonnet';

local columns(baseline, elmo, of_baseline={}) = [
  { name: 'baseline', experiment: baseline, settings: of_baseline },
  { name: 'token layer', experiment: elmo, settings: { elmo+: { layers: [0] } } },
  { name: 'layer 1', experiment: elmo, settings: { elmo+: { layers: [1] } } },
  { name: 'last layer', experiment: elmo, settings: { elmo+: { layers: 'last' } } },
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
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet') + [
          {
            name: 'TagLM',
            experiment: import '../ablations/ner_elmo_taglm.jsonnet',
            against: 'last layer',
          },
        ],
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
    ],
  },
}
