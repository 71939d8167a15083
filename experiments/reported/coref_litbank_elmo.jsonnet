// Coreference in novels with ELMo, 5 epochs.
(import '../ablations/coref_litbank_elmo.jsonnet') + (import 'scale.libsonnet').coref_litbank
