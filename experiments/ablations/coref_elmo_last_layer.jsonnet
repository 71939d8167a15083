// The last layer only, at the input.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
