// ELMo at the input: coref_elmo.jsonnet itself.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
