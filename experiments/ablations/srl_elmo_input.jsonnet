// ELMo at the input (Table 3: 84.7 dev F1): srl_elmo.jsonnet itself.
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
