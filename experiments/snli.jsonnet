// Textual entailment without ELMo: the baseline of Peters et al. (2018), section 4.
// Model: the sequential ESIM of Chen et al. (2017) as Peters et al. describe it - LSTMs and
// feed-forward layers of 300, all with a ReLU, GloVe fixed, dropout 0.5 into each LSTM (the same
// for all tokens) and into the last two layers. Training: Adam at 4e-4, halved after each epoch
// that is no better on dev, gradient norm 5, batches of 32. Not in the paper: 75 epochs at most, and
// an end after 5 without a better accuracy on dev. Chen et al. differ: tanh before the last layer,
// word vectors trained, dropout of single numbers, and in their program marks round each sentence.
// Each word without a vector has a random one of its own.
// Paper: 88.0 accuracy on SNLI's test pairs. Ours, on which data, and by which command: README.md.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/snli.libsonnet') {
  settings+: { corpus: paths.snli, words: [words.vectors(dim=300, trainable=false)] },
}
