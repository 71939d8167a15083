// lambda 0.001 (Table 2: 84.8 dev F1): srl_elmo.jsonnet itself.
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
