// Semantic role labelling without ELMo, 2 epochs.
(import '../srl.jsonnet') + (import 'scale.libsonnet').srl
