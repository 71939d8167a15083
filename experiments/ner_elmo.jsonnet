// Named entities with ELMo at the input: ner.jsonnet and what follows.
// ELMo: all layers, lambda 0.1, which keeps their weights almost equal; no dropout of its own, the
// variational dropout is over it too, as in AllenNLP's configuration.
// Paper: 92.22 F1 on CoNLL-2003 test, mean of 5 runs, 2.06 over the baseline. Ours: README.md.
(import 'ner.jsonnet') {
  settings+: { elmo: (import 'lib/elmo.libsonnet') { dropout: 0.0, lambda: 0.1 } },
}
