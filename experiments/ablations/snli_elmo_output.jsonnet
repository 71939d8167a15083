// ELMo at the output only (Table 3: 88.7 dev accuracy, 89.5 at both).
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
