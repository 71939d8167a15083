// The last layer only, at the input.
(import '../ner_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
