// A penalty that leaves the layer weights free.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
