// SST-5 with CoVe, 2 epochs of a smaller model.
(import '../sst_cove.jsonnet') + (import 'scale.libsonnet').sst
