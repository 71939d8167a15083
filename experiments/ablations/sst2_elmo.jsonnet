// SST-2, positive or negative, with ELMo: not in the paper.
(import '../sst_elmo.jsonnet') { settings+: { granularity: '2-class' } }
