// Muon for the matrices of the LSTMs.
(import 'ladder.libsonnet') { settings+: { optimizer: $.muon } }
