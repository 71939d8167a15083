// SST-5 with ELMo, 2 epochs of a smaller model.
(import '../sst_elmo.jsonnet') + (import 'scale.libsonnet').sst
