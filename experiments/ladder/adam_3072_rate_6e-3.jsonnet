// Adam with batches of 3,072 tokens, and twice the rate.
(import 'ladder.libsonnet') { settings+: { optimizer+: { lr: 6e-3 }, batches+: { tokens_per_batch: 3072 } } }
