// Semantic role labelling with ELMo, 2 epochs.
(import '../srl_elmo.jsonnet') + (import 'scale.libsonnet').srl
