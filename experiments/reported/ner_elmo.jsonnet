// Named entities with ELMo, 6 epochs.
(import '../ner_elmo.jsonnet') + (import 'scale.libsonnet').ner
