// Semantic role labelling with ELMo at the input of srl.jsonnet.
// ELMo: all layers, dropout 0.1 as in AllenNLP's configuration, lambda 0.001. The loss is summed
// over a sentence (AllenNLP: averaged), so that the same lambda is a weaker penalty.
// Paper: 84.6 F1 on CoNLL-2012 test, 3.2 above the baseline. Ours: docs/results/table1.md.
(import 'srl.jsonnet') {
  settings+: { elmo: (import 'lib/elmo.libsonnet') { dropout: 0.1 } },
}
