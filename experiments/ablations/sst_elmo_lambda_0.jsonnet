// No penalty on the layer scores.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
