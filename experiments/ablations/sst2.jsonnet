// SST-2, positive or negative, without ELMo: not in the paper; McCann et al. have 90.3 with CoVe.
(import '../sst.jsonnet') { settings+: { granularity: '2-class' } }
