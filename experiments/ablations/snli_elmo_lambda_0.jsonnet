// No penalty on the layer scores.
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
