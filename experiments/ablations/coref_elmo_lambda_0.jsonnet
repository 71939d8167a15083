// No penalty on the layer scores: coref_elmo.jsonnet itself, as in the paper.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
