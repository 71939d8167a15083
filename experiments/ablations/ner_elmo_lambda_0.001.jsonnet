// A penalty that leaves the layer weights free, of which NER took no notice (section 5.1).
(import '../ner_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
