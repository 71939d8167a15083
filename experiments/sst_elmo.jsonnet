// Sentiment with ELMo at the input and after the integrator: sst.jsonnet and what follows.
// ELMo: all layers, lambda 0.001. The paper names no dropout here; AllenNLP's network with ELMo drops
// 0.5 of words and ELMo together (0.25 of words without ELMo), and nothing more of ELMo after the
// integrator. (AllenNLP's own configuration has ELMo at the input only, and no lambda.)
// Paper: 54.7 accuracy on SST-5 test, 3.3 over the baseline. Ours: README.md.
(import 'sst.jsonnet') {
  settings+: { elmo: (import 'lib/elmo.libsonnet') { at: 'both', dropout: 0.0 }, dropout: 0.5 },
}
