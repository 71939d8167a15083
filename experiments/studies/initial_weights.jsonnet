// Whether SNLI depends on the initial weights of its LSTMs, on test: by `initial_layer`
// (orthogonal recurrent weights, Glorot input weights, biases 0, of forget gates 1), or
// PyTorch's, all uniform. `esim` of allennlp-models begins with the latter in
// benchmarks/peer_scores.py, and is better than our baseline there. The models are the best
// baseline and the best model with ELMo of table1.jsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';
local training = import 'training.libsonnet';

local bound = 1 / std.sqrt((import '../snli.jsonnet').settings.hidden_size);
local uniform = { initializer: { regexes: [['.*', { type: 'uniform', a: -bound, b: bound }]] } };
local with_and_without(name, experiment, settings={}) = [
  { name: name + ', orthogonal', experiment: experiment, settings: settings },
  {
    name: name + ', uniform',
    experiment: experiment,
    settings: settings + uniform,
    against: name + ', orthogonal',
  },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Initial weights of LSTMs',
    rows: [
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        columns: with_and_without('baseline', import '../snli.jsonnet') + with_and_without(
          'ELMo', import '../snli_elmo.jsonnet', elmo_regularisation.without_snli
        ),
      } + training.long.snli { settings+: { words: words.with_trainable(super.words, true) } },
    ],
  },
}
