// lambda 0.001 (Table 2: 89.5 dev accuracy): snli_elmo.jsonnet itself.
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
