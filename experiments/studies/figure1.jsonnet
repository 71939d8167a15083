// Figure 1 of Peters et al. (2018): scores by fraction of the training data. An epoch on less data
// has fewer optimizer steps, so epochs and patience are multiplied by 1 / fraction, at most by 10;
// a model would otherwise stop before it has learned anything. For SNLI and SRL, whose epochs take
// minutes, the factor is 1 / sqrt(fraction), at most 10, and with less than all data the first
// 2,000 instances of dev choose the best epoch. For SNLI, the number of epochs without improvement
// after which the learning rate is halved is multiplied by the same factor. SNLI and SRL train in
// bfloat16 where the CPU has it. NER is scored on dev, SNLI and SRL on test: their runs on all data
// are from table1.jsonnet. NER (which the paper's figure does not have) has fixed word vectors,
// which are better without ELMo on all data, and SNLI trained ones, which are better on a fifth
// (table1.jsonnet). In SNLI, ELMo has trained word vectors and the regularisation of the baseline,
// which together are better than its settings in the paper.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';

local training(num_epochs, patience, factor) = {
  num_epochs: std.round(factor * num_epochs),
  patience: std.round(factor * patience),
};
local factor(fraction) = std.min(10, 1 / fraction);
local factor_of_long(fraction) = std.min(10, 1 / std.sqrt(fraction));
local long_training(num_epochs, patience, fraction) =
  training(num_epochs, patience, factor_of_long(fraction)) {
    mixed_precision: true,
    max_validation_instances: if fraction == 1 then null else 2000,
  };

local columns(baseline, elmo, settings_of_elmo={}) = [
  { name: 'baseline', experiment: baseline },
  { name: 'ELMo', experiment: elmo, settings: settings_of_elmo },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Figure 1: with less training data',
    fractions: [0.001, 0.01, 0.03, 0.1, 0.3, 1],
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.dev,
        columns: columns(import '../ner.jsonnet', import '../ner_elmo.jsonnet'),
        settings: function(fraction) training(25, 5, factor(fraction)) {
          words: words.with_trainable(super.words, false),
        },
      },
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        columns: columns(
          import '../snli.jsonnet',
          import '../snli_elmo.jsonnet',
          elmo_regularisation.without_snli
        ),
        settings: function(fraction) long_training(10, 3, fraction) {
          words: words.with_trainable(super.words, true),
          scheduler_patience: std.round(factor_of_long(fraction)) - 1,
        },
      },
      {
        name: 'SRL',
        metric: 'f1-measure-overall',
        evaluate: paths.srl.test,
        columns: columns(import '../srl.jsonnet', import '../srl_elmo.jsonnet'),
        settings: function(fraction) long_training(15, 3, fraction),
      },
    ],
  },
}
