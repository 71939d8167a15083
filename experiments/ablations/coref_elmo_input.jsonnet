// ELMo at the input: coref_elmo.jsonnet itself, named as for other tasks.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
