// Coreference with ELMo, 15 epochs.
(import '../coref_elmo.jsonnet') + (import 'scale.libsonnet').coref
