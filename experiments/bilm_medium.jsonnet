// The biLM in pretrained/medium, for a GPU: five minutes of training on one NVIDIA H100, nearly
// five passes over 27.5 million tokens of Wikipedia, with half the cells of the authors' large
// biLM.
// Differences from bilm_small.jsonnet: four times the cells, twice the width and the character
// filters, more than five times the tokens per batch, four times the samples of the softmax, the
// authors' dropout, fewer lines shuffled at once so that a pass begins sooner, and ten processes
// that build batches.
// Paper: perplexity 39.7 of the large biLM on other text. Ours: 56.7, pretrained/medium/README.md.
(import 'bilm_small.jsonnet') {
  settings+: {
    filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512]],
    dim: 2048,
    projection_dim: 256,
    num_samples: 4096,
    dropout: 0.1,
    batches+: { tokens_per_batch: 16384, shuffle_lines: 30000 },
    heldout_batches+: { tokens_per_batch: 16384 },
    schedule+: { minutes: 5 },
    num_workers: 10,
    save_every_num_batches: 5000,
  },
}
