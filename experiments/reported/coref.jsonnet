// Coreference without ELMo, 15 epochs.
(import '../coref.jsonnet') + (import 'scale.libsonnet').coref
