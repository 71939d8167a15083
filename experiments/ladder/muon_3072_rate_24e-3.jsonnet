// Muon with batches of 3,072 tokens, and eight times the rate.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon { lr: 24e-3 }, batches+: { tokens_per_batch: 3072 } } }
