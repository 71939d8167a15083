// Muon with batches of 1,536 tokens.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon, batches+: { tokens_per_batch: 1536 } } }
