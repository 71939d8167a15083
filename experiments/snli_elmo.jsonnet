// Textual entailment with ELMo at input and output: snli.jsonnet and what follows.
// ELMo: all layers, layer norm, lambda 0.001. With it, as in the paper, an L2 penalty of 1e-4 on
// the weights of LSTMs and feed-forward layers, and dropout 0.5 after the attention.
// Paper: 88.7 accuracy on SNLI's test pairs (mean of 5 seeds, sd 0.17). Ours: README.md.
(import 'snli.jsonnet') {
  settings+: {
    elmo: (import 'lib/elmo.libsonnet') { at: 'both', dropout: 0.0, layer_norm: true },
    penalties: [
      ['^(encoder|composition|projection|decision).*weight', { type: 'l2', alpha: 1e-4 }],
    ],
    attention_dropout: 0.5,
  },
}
