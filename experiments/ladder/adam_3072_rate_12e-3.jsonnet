// Adam with batches of 3,072 tokens, and four times the rate.
(import 'ladder.libsonnet') { settings+: { optimizer+: { lr: 12e-3 }, batches+: { tokens_per_batch: 3072 } } }
