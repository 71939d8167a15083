// A penalty that keeps the layer weights close to equal.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { lambda: 1 } } }
