// The top layer only, as CoVe and TagLM.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
