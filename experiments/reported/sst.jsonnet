// SST-5 without ELMo, 2 epochs of a smaller model.
(import '../sst.jsonnet') + (import 'scale.libsonnet').sst
