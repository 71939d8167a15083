// A penalty that leaves the layer weights free; lambda had little effect on NER (section 5.1).
(import '../ner_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
