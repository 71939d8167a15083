// A weak penalty, with which the layer weights can differ.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
