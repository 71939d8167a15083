// ELMo at the input: coref_elmo.jsonnet itself, named as its like of other tasks are.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
