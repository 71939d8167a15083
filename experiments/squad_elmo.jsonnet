// Question answering with ELMo at input and output of squad.jsonnet.
// ELMo: all layers, no layer norm, no penalty, dropout 0.5; the biLM reads a paragraph as a whole.
// Difference: the paper's biLM was fine-tuned on the paragraphs of SQuAD.
// Paper: 85.8 F1 on SQuAD's hidden test set, 85.6 on dev. Ours: docs/results/table1.md.
(import 'squad.jsonnet') {
  settings+: { elmo: (import 'lib/elmo.libsonnet') { at: 'both', lambda: 0 } },
}
