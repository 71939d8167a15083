// A penalty that keeps the layer weights close to equal (Table 2: 85.0 dev F1).
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { lambda: 1 } } }
