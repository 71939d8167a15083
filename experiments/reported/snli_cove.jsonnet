// SNLI with CoVe, 3 epochs of 12,000 pairs.
(import '../snli_cove.jsonnet') + (import 'scale.libsonnet').snli
