// TagLM: the last layer only, between the two BiLSTMs (Peters et al. 2017: 96.37 test F1).
(import '../chunking_elmo.jsonnet') { settings+: { elmo+: { layers: 'last', at: 'output' } } }
