// Muon with batches of 3,072 tokens, and twice the cells.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon, batches+: { tokens_per_batch: 3072 }, dim: 1024 } }
