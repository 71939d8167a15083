// SQuAD with ELMo, 4 epochs of 30,000 questions.
(import '../squad_elmo.jsonnet') + (import 'scale.libsonnet').squad
