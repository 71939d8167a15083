// Adam with batches of 3,072 tokens.
(import 'ladder.libsonnet') { settings+: { batches+: { tokens_per_batch: 3072 } } }
