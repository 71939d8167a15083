// Muon with batches of 3,072 tokens, four times the rate, and twice the cells.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon { lr: 12e-3 }, batches+: { tokens_per_batch: 3072 }, dim: 1024 } }
