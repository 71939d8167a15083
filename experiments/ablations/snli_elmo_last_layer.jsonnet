// The last layer only, as in CoVe (Table 2: 89.1 dev accuracy, 89.5 with all layers).
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { layers: 'last' } } }
