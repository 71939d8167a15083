// The forward language model that section 3.4 builds on: CNN-BIG-LSTM of Jozefowicz et al. (2016,
// "BIG LSTM+CNN inputs"), two layers of 8192 cells projected to 1024, 4096 character filters,
// dropout 0.25, on the 1 Billion Word Benchmark. The authors needed three weeks on 32 GPUs.
// Their public code multiplies the loss by its 20 steps; see bilm.jsonnet for the consequences.
// Differences: the paper does not give the widths of the filters, so we use ELMo's and 2048 of
// width 8; the activation is from Kim et al. (2016), on which the encoder is based; eight
// synchronous processes share a batch of 8 x 128 rows, instead of 32 asynchronous workers; 10
// epochs, instead of training until convergence; the norm of all gradients is clipped at 10, not
// the LSTMs' at 1. As in bilm.jsonnet: bfloat16, unbiased samples, a softmax initialised as
// a unigram model, held-out shard 1.
// Paper: perplexity 30.0. Ours: not run.
(import 'bilm.jsonnet') {
  settings+: {
    bidirectional: false,
    filters+: [[8, 2048]],
    activation: 'tanh',
    dim: 8192,
    projection_dim: 1024,
    cell_clip: null,
    proj_clip: null,
    use_skip_connections: false,
    dropout: 0.25,
    batches+: { batch_size: 8 * 128 },
    processes: std.range(0, 7),
  },
}
