// ELMo at the input only (Table 3: 85.1 dev F1, 85.6 at both).
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
