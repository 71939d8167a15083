// A penalty that keeps the layer weights close to equal.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { lambda: 1 } } }
