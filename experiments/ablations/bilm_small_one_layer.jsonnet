// bilm_small.jsonnet with one LSTM layer instead of two. Ours: not run.
(import '../bilm_small.jsonnet') { settings+: { n_layers: 1 } }
