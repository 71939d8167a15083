// ELMo at input and output (Table 3: 84.3 dev F1, 84.7 at the input).
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
