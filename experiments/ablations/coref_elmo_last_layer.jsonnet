// The top layer only, at the input.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
