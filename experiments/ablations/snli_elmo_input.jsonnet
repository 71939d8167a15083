// ELMo at the input (Table 3: 88.9 dev accuracy, 89.5 at both).
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { at: 'input' } } }
