// Muon with batches of 3,072 tokens, four times the rate, and four times the samples.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon { lr: 12e-3 }, batches+: { tokens_per_batch: 3072 }, num_samples: 4096 } }
