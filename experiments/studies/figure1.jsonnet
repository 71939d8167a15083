// Figure 1 of Peters et al. (2018): dev scores by fraction of the training data. An epoch on less
// data has fewer optimizer steps, so epochs and patience are multiplied by 1 / fraction, at most by
// 10; a model would otherwise stop before it has learned anything. NER has fixed word vectors,
// because they gave a better score on all data (table1.jsonnet).
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local same = import 'same.libsonnet';

local training(num_epochs, patience) = function(fraction) {
  local times = std.min(10, 1 / fraction),
  num_epochs: std.round(times * num_epochs),
  patience: std.round(times * patience),
};

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
        settings: function(fraction) training(25, 5)(fraction) {
          words: words.with_trainable(super.words, false),
        },
      },
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.dev,
        columns: columns(import '../snli.jsonnet', import '../snli_elmo.jsonnet'),
        settings: function(fraction) same.snli + training(10, 3)(fraction),
      },
      {
        name: 'SRL',
        metric: 'f1-measure-overall',
        evaluate: paths.srl.dev,
        columns: columns(import '../srl.jsonnet', import '../srl_elmo.jsonnet'),
        settings: function(fraction) training(15, 3)(fraction) { mixed_precision: true },
      },
    ],
  },
}
