// A biLM with four times the cells of bilm_small.jsonnet, twice its width and twice its character
// filters, for a GPU: five minutes on one NVIDIA H100, beside ten processes that build
// batches. Differences from bilm_small.jsonnet: these widths, five times the tokens per batch, four
// times the samples of the softmax, and dropout, because the text is read many times.
(import 'bilm_small.jsonnet') {
  settings+: {
    filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512]],
    dim: 2048,
    projection_dim: 256,
    num_samples: 4096,
    dropout: 0.1,
    batches+: { tokens_per_batch: 16384, shuffle_lines: 30000 },
    heldout_batches+: { tokens_per_batch: 16384, shuffle_lines: 30000 },
    schedule+: { minutes: 5 },
    num_workers: 10,
    save_every_num_batches: 5000,
  },
}
