// The last layer only, as in CoVe (Table 2: 84.7 dev F1, 85.2 with all layers).
(import '../squad_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
