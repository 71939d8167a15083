// A small penalty, as in Table 2 (85.2 dev F1).
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
