// A penalty that keeps the layer weights close to equal (Table 2: 84.6 dev F1).
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { lambda: 1 } } }
