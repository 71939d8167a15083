// Named entities with TagLM, 6 epochs.
(import '../ablations/ner_elmo_taglm.jsonnet') + (import 'scale.libsonnet').ner
