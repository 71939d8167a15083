// A weak penalty, with which the layer weights can differ; little effect on NER (section 5.1).
(import '../ner_elmo.jsonnet') { settings+: { elmo+: { lambda: 0.001 } } }
