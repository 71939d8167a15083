// A penalty that keeps the layer weights close to equal (Table 2: 89.3 dev accuracy).
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { lambda: 1 } } }
