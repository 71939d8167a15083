// The biLM that is shipped with the project: four hours of training on two CPU cores, more than two
// passes over 27.5 million tokens of Wikipedia, with half the cells of the authors' small biLM.
// Differences from bilm.jsonnet, to train faster: Muon for the matrices of the LSTMs, one matrix
// per gate, and Adam for the rest; a learning rate that rises over 200 batches and decays to zero
// over four hours; gradient norm 1; an eighth of the cells, a quarter of the projection, one
// highway layer; fewer character filters, small batches, an eighth of the samples, a sixteenth of
// the vocabulary, no dropout; held-out text sentence by sentence. The trials in ladder/ compare
// such settings. Each sentence starts from a zero state, as in the tasks.
// Paper: perplexity 39.7 of the large biLM on other text. Ours: 78.2, pretrained/small/README.md.
(import 'lib/bilm.libsonnet') {
  settings+: {
    local paths = import 'lib/paths.libsonnet',
    corpus: paths.lm.large,
    filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]],
    n_highway: 1,
    dim: 512,
    projection_dim: 128,
    num_words: 50000,
    num_samples: 1024,
    dropout: 0.0,
    mixed_precision: true,
    batches: { order: 'sentences', tokens_per_batch: 3072 },
    optimizer: {
      type: 'elmo-muon',
      lr: 8e-3,
      betas: [0.9, 0.99],
      parameter_groups: [
        [['lstm.*(input|recurrent).weight'], { blocks: 4 }],
        [['lstm.*projection.weight'], { blocks: 1 }],
      ],
    },
    schedule: { type: 'elmo-linear-decay', minutes: 240, warmup_steps: 200 },
    grad_norm: 1.0,
    num_epochs: 1000,
    num_workers: 0,
    save_every_num_batches: 500,
  },
}
