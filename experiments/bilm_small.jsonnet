// The biLM that comes with the project.
(import 'lib/bilm.libsonnet') {
  settings+: {
    local paths = import 'lib/paths.libsonnet',
    corpus: paths.lm,
    filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]],
    n_highway: 1,
    dim: 512,
    projection_dim: 128,
    num_words: 50000,
    num_samples: 1024,
    dropout: 0.0,
    mixed_precision: true,
    batches: { order: 'sentences', tokens_per_batch: 6144 },
    optimizer: { type: 'elmo-adam', lr: 3e-3, betas: [0.9, 0.99] },
    schedule: { type: 'elmo-linear-decay', minutes: 82, warmup_steps: 200 },
    grad_norm: 1.0,
    num_epochs: 1000,
    num_workers: 0,
    processes: [-1, -1],
    save_every_num_batches: 500,
  },
}
