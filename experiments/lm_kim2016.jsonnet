// The character-aware language model whose encoder ELMo adopted: LSTM-Char-Large of Kim et al.
// (2016) on Mikolov's version of the Penn Treebank, `ptb.train.txt` and so on in $ELMO_DATA/lm/ptb.
// Two layers of 650 cells over min(200, 50 w) tanh filters of each width w from 1 to 7 and two
// highway layers; dropout 0.5; SGD at rate 1, halved when dev perplexity falls by less than 1.
// The authors sum gradients over the 35 steps. Here they are averaged, so the rate is 35 and the
// norm is clipped at 5 / 35.
// Differences: dropout also between highway and LSTM; a constant 1 is added to the forget gate's
// bias; dev perplexity is compared with the best epoch, not the previous one; consecutive
// sentences are in different rows, so that the state carried into a sentence comes from unrelated
// text.
// Paper: perplexity 78.9 on test (Kim et al.). Ours: not run.
local paths = import 'lib/paths.libsonnet';

(import 'lib/bilm.libsonnet') {
  settings+: {
    local num_steps = self.batches.num_steps,
    corpus: paths.lm.ptb,
    bidirectional: false,
    character_dim: 15,
    filters: [[width, std.min(200, 50 * width)] for width in std.range(1, 7)],
    activation: 'tanh',
    n_highway: 2,
    character_projection: false,
    dim: 650,
    cell_clip: null,
    proj_clip: null,
    use_skip_connections: false,
    num_words: null,
    num_samples: null,
    dropout: 0.5,
    initializer: {
      regexes: [['.*', { type: 'uniform', a: -0.05, b: 0.05 }]],
      // The bias of the highways' transform gate starts at -2, as in the paper.
      prevent_regexes: ['highways.*gate.bias'],
    },
    batches: { order: 'streams', batch_size: 20, num_steps: 35 },
    heldout_batches: { order: 'streams', batch_size: 1, num_steps: 35 },
    optimizer: { type: 'sgd', lr: 1.0 * num_steps },
    schedule: {
      type: 'elmo-reduce-on-plateau',
      mode: 'min',
      factor: 0.5,
      patience: 0,
      threshold: 1.0,
      threshold_mode: 'abs',
    },
    grad_norm: 5.0 / num_steps,
    num_epochs: 25,
  },
}
