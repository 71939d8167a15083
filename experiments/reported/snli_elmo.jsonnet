// SNLI with ELMo, 3 epochs of 12,000 pairs.
(import '../snli_elmo.jsonnet') + (import 'scale.libsonnet').snli
