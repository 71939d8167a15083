// ELMo at input and output (appendix: about 0.7 F1 less than at the input alone).
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
