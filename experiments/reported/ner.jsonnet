// Named entities without ELMo, 6 epochs.
(import '../ner.jsonnet') + (import 'scale.libsonnet').ner
