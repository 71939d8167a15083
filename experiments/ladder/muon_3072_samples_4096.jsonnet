// Muon with batches of 3,072 tokens, and four times the samples.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon, batches+: { tokens_per_batch: 3072 }, num_samples: 4096 } }
