// ELMo at input and output (Table 3: 85.6 dev F1): squad_elmo.jsonnet itself.
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
