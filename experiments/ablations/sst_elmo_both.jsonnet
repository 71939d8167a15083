// ELMo at input and output: sst_elmo.jsonnet itself, named as the table names it.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
