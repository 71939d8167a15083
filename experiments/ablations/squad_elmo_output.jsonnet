// ELMo at the output only (Table 3: 84.8 dev F1, 85.6 at both).
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
