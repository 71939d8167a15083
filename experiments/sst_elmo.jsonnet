// Sentiment with ELMo at the input and after the integrator: sst.jsonnet and what follows.
// ELMo: all layers, lambda 0.001; dropout 0.5 as AllenNLP advises, the paper names none here.
// (AllenNLP's own configuration has ELMo at the input only and no lambda.)
// Paper: 54.7 accuracy on SST-5 test, 3.3 over the baseline. Ours: README.md.
(import 'sst.jsonnet') {
  settings+: { elmo: (import 'lib/elmo.libsonnet') { at: 'both', dropout: 0.0 }, dropout: 0.5 },
}
