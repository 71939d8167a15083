// SNLI without ELMo, 3 epochs of 12,000 pairs.
(import '../snli.jsonnet') + (import 'scale.libsonnet').snli
