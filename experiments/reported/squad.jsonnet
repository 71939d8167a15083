// SQuAD without ELMo, 4 epochs of 30,000 questions.
(import '../squad.jsonnet') + (import 'scale.libsonnet').squad
