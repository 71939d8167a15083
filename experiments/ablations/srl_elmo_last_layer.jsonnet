// The last layer only, as in CoVe and TagLM (Table 2: 84.1 dev F1, 84.8 with all layers).
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
