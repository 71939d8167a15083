// Semantic role labelling without ELMo: the baseline of Peters et al. (2018), section 4.
// Model and training: He et al. (2017) - 8 alternating highway LSTM layers of 300, recurrent
// dropout 0.1, fine-tuned GloVe vectors of 100 dimensions, Adadelta, gradient norm 1, batches of
// 80, sentences of up to 100 tokens, loss summed over a sentence, at most 500 epochs, and early
// stopping after 200 without a better F1 on dev. (AllenNLP averages the loss and clips gradients by
// value, which trains more slowly.)
// Words are looked up in lower case, as GloVe's are; with cased vectors, keeping the case is no
// better with one seed (docs/results/table1.md). With ELMO_GLOVE, vectors have the width of that
// file.
// Differences: I- tags at the start of a sentence are also forbidden in decoding; each word of
// train and dev without a vector has its own random vector, and words that are new at prediction
// time share an untrained one (He et al.: one trained vector for all unknown words). The embedding
// of the predicate starts from N(0, 1) and the output layer from U(-0.06, 0.06), PyTorch's initial
// values; He et al. draw both from N(0, 0.01).
// Paper: 81.4 F1 on CoNLL-2012 test. Ours: docs/results/table1.md.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/srl.libsonnet') {
  settings+: { corpus: paths.srl, words: [words.vectors(dim=100, lowercase=true)] },
}
