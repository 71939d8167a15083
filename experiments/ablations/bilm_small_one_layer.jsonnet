// bilm_small.jsonnet with one LSTM layer instead of two, trained on as many batches. Ours: docs/results/language-models.md.
(import '../bilm_small.jsonnet') { settings+: { n_layers: 1, schedule+: { minutes: null, steps: 21971 } } }
