// bilm_small.jsonnet with one LSTM layer instead of two, trained on as many batches. Ours: perplexity
// TODO.
(import '../bilm_small.jsonnet') {
  settings+: {
    n_layers: 1,
    schedule: { type: 'elmo-linear-decay', steps: 21971, warmup_steps: 200 },
  },
}
