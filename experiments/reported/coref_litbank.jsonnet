// Coreference in novels without ELMo, 5 epochs.
(import '../ablations/coref_litbank.jsonnet') + (import 'scale.libsonnet').coref_litbank
