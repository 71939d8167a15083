// The last layer only, as in CoVe and TagLM.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
