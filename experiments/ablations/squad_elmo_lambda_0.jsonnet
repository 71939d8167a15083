// No penalty on the layer scores: squad_elmo.jsonnet itself.
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
