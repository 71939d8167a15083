// ELMo at the output only (Table 3: 80.9 dev F1, 84.7 at the input).
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
