// ELMo at input and output (Table 3: 89.5 dev accuracy): snli_elmo.jsonnet itself.
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { at: 'both' } } }
