// Muon with batches of 3,072 tokens.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon, batches+: { tokens_per_batch: 3072 } } }
