// Sentiment with ELMo at the input of sst.jsonnet and after its integrator.
// ELMo: all layers, lambda 0.001. The paper gives no dropout. As in AllenNLP's network with ELMo,
// dropout is 0.5 on the concatenation of words and ELMo (0.25 on words without ELMo), and after
// the integrator on the pooled vector only. (AllenNLP's
// configuration has ELMo at the input only, and no lambda.)
// Difference: the paper computes the ELMo vectors of the output with a second BiLSTM; here they are
// concatenated with the integrator's output, as AllenNLP's network can do.
// Paper: 54.7 accuracy on SST-5 test, 3.3 above the baseline. Ours: docs/results/table1.md.
(import 'sst.jsonnet') {
  settings+: { elmo: (import 'lib/elmo.libsonnet') { at: 'both', dropout: 0.0 }, dropout: 0.5 },
}
