// The biLM of Peters et al. (2018), sections 3.1 and 3.4, trained as bilm-tf trains it: 10 epochs
// of the 1 Billion Word Benchmark, whose folders `training-monolingual.tokenized.shuffled` and
// `heldout-…` belong in $ELMO_DATA/lm/1b. Two weeks on three GPUs of 2017.
// bilm-tf multiplies the loss by its 20 steps before it takes gradients. Adagrad from an
// accumulator of 1 and a norm clipped at 10 are then, for gradients of the loss itself, Adagrad
// from 1 / 20^2 and a norm clipped at 10 / 20; the learning rate stays.
// Differs: products in bfloat16. Both directions of a row read the same sentences, so that the
// character encoder runs once per word. Sampled words are weighed without bias, and the words to
// predict in a batch all count. The softmax starts as the unigram model. The best epoch is chosen
// on held-out shard 1; shard 0 is for testing and is read as bilm-tf does, in 256 streams.
// GPUs: `processes` shares out a batch of 3 x 128 rows, whatever their number; null for one.
// Paper: 39.7 perplexity, mean of both directions. Ours: not run.
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
