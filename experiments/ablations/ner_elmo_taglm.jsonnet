// TagLM: the last layer only, between the two BiLSTMs (Peters et al. 2017: 91.93 test F1).
(import '../ner_elmo.jsonnet') { settings+: { elmo+: { layers: 'last', at: 'output' } } }
