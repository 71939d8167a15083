// ELMo at input and output: sst_elmo.jsonnet itself.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
