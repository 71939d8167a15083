// Textual entailment without ELMo: the baseline of Peters et al. (2018), section 4.
// Model: the sequential ESIM of Chen et al. (2017) as described by Peters et al. - LSTMs and
// feed-forward layers of 300, all with ReLU, fixed GloVe vectors, dropout 0.5 on the input of each
// LSTM (the same for all tokens) and of the last two layers. Training: Adam at 4e-4, halved after
// each epoch without improvement on dev, gradient norm 5, batches of 32. Not in the paper: at most
// 75 epochs, and early stopping after 5 without a better accuracy on dev. Chen et al. use tanh
// before the last layer, train word vectors, use elementwise dropout, and add boundary tokens to
// sentences. Word vectors are as wide as in ELMO_GLOVE. Each word of train and dev without
// a vector has its own random vector, and new words share an untrained one.
// Paper: 88.0 accuracy on SNLI test. Ours: docs/results/table1.md.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/snli.libsonnet') {
  settings+: { corpus: paths.snli, words: [words.vectors(dim=300, trainable=false)] },
}
