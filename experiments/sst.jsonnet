// Sentiment of sentences in five classes without ELMo: the baseline of Peters et al. (2018).
// Model: McCann et al. (2017), section 5 - BiLSTMs of 300, biattention, an integrator, pooling by
// maximum, mean, minimum and self-attention - with two ReLU layers instead of maxout, fixed word
// vectors, and Adam at 1e-4 on all phrases of at least 4 words, as in the paper. The papers do not
// give the other settings; they are from AllenNLP's biattentive classification network: a ReLU
// layer of 300 before the encoder, dropout 0.25 on words and after that layer, 0.1 on the pooled
// vector, 0.2 and 0.3 in the classifier of 1200 and 600, gradient norm 5, batches of 100, 40
// epochs, patience 5 on dev.
// Differences: word vectors are as wide as in ELMO_GLOVE (paper: 300); each word of train
// and dev without a vector has its own random vector, and new words share an untrained one.
// Paper: 51.4 accuracy on SST-5 test. Ours: docs/results/table1.md.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/sst.libsonnet') {
  settings+: { corpus: paths.sst, words: [words.vectors(dim=300, trainable=false)] },
}
