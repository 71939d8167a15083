// Textual entailment with ELMo at input and output: snli.jsonnet and what follows.
// ELMo: all layers, layer norm, lambda 0.001. With it, as in the paper, an L2 penalty of 1e-4 on
// the weights of LSTMs and feed-forward layers, and dropout 0.5 after the attention. ELMo has no
// dropout of its own: at the input the variational dropout covers it, as in AllenNLP's configuration,
// and at the output the dropout after the attention.
// Differs: the biLM is not fine-tuned on SNLI (paper: it is, 89.5 instead of 88.9 on dev); layer norm
// is that of each token (the authors: of all tokens of a batch together, `layer_norm: 'batch'`).
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
