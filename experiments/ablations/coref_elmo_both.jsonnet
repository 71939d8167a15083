// ELMo at input and output (appendix: 0.7 F1 less on dev than at the input alone).
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
