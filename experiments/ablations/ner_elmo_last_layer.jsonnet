// The top layer only, at the input.
(import '../ner_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
