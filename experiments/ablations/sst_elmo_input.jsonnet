// ELMo at the input only, as in AllenNLP's configuration.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
