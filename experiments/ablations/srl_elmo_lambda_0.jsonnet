// No penalty on the layer scores.
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
