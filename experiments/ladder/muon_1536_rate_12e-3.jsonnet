// Muon with batches of 1,536 tokens, and four times the rate.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon { lr: 12e-3 }, batches+: { tokens_per_batch: 1536 } } }
