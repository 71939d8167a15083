// The forward language model that section 3.4 starts from: CNN-BIG-LSTM of Jozefowicz et al. (2016,
// "BIG LSTM+CNN inputs"), two layers of 8192 cells projected to 1024, 4096 character filters,
// dropout 0.25, on the 1 Billion Word Benchmark. Three weeks on 32 GPUs of 2016.
// Their public code multiplies the loss by its 20 steps; see bilm.jsonnet for what follows.
// Differs: they do not say how wide the filters are, so those are ELMo's and 2048 of width 8; the
// activation is that of Kim et al. (2016), whom they follow. Eight processes share a batch of
// 8 x 128 rows where 32 worked without waiting for each other, for 10 epochs instead of until
// nothing improves. The norm of all gradients is clipped at 10, not that of the LSTMs' at 1. And as
// in bilm.jsonnet: bfloat16, unbiased samples, a softmax that starts as the unigram model, held-out
// shard 1.
// Paper: 30.0 perplexity. Ours: not run.
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
