// The biLM that comes with the project: what two cores learn in an hour, three quarters of a pass
// over 27 million tokens of Wikipedia. Half the cells of the authors' small biLM. Differs from
// bilm.jsonnet in order to learn faster: Adam, whose rate falls to zero when the time is over, an
// eighth of the samples, a sixteenth of the words, no dropout because no text is read twice. Each
// sentence is read by itself from a zero state, as ELMo will read it.
// Ours ran with `processes: [-1, -1]`, two processes of one thread. With a GPU leave it null.
// Paper: 39.7 perplexity of the large biLM on other text. Ours: 110.2, pretrained/small/README.md.
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
    batches: { order: 'sentences', tokens_per_batch: 6144 },
    optimizer: { type: 'elmo-adam', lr: 3e-3, betas: [0.9, 0.99] },
    schedule: { type: 'elmo-linear-decay', minutes: 63, warmup_steps: 200 },
    grad_norm: 1.0,
    num_epochs: 1000,
    num_workers: 0,
    save_every_num_batches: 500,
  },
}
