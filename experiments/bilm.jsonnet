// The biLM of Peters et al. (2018), sections 3.1 and 3.4, trained as in bilm-tf: 10 epochs of the 1
// Billion Word Benchmark, whose folders `training-monolingual.tokenized.shuffled` and
// `heldout-monolingual.tokenized.shuffled` belong in $ELMO_DATA/lm/1b. The authors needed two weeks
// on three GPUs.
// bilm-tf multiplies the loss by its 20 steps before it computes gradients. For gradients of the
// unscaled loss, its Adagrad with initial accumulator 1 and norm clipped at 10 is equivalent to an
// initial accumulator of 1 / 20^2 and a norm clipped at 10 / 20; the learning rate is the same.
// Differences: matrix products in bfloat16; both directions of a row read the same sentences, so
// that the character encoder runs once per word; the estimated normaliser of the sampled softmax is
// unbiased and includes all targets of a batch; the softmax is initialised as a unigram model; the
// best epoch is chosen on held-out shard 1; shard 0 is for testing. Both are read as in bilm-tf, in
// 256 streams.
// `processes` lists the GPUs that share a batch of 3 x 128 rows; null for one GPU.
// Paper: perplexity 39.7, mean of both directions. Ours: not run.
local paths = import 'lib/paths.libsonnet';

(import 'lib/bilm.libsonnet') {
  settings+: {
    local num_steps = self.batches.num_steps,
    corpus: paths.lm.one_billion,
    filters: [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
    n_highway: 2,
    dim: 4096,
    projection_dim: 512,
    num_words: 793471,
    num_samples: 8192,
    dropout: 0.1,
    mixed_precision: true,
    batches: { order: 'streams', batch_size: 3 * 128, num_steps: 20 },
    heldout_batches: { order: 'streams', batch_size: 256, num_steps: 20 },
    optimizer: {
      type: 'elmo-adagrad',
      lr: 0.2,
      initial_accumulator_value: 1.0 / (num_steps * num_steps),
    },
    grad_norm: 10.0 / num_steps,
    num_epochs: 10,
    processes: [0, 1, 2],
  },
}
