// Semantic role labelling without ELMo: the baseline of Peters et al. (2018), section 4.
// Model and training: He et al. (2017) - 8 alternating highway LSTM layers of 300, recurrent
// dropout 0.1, GloVe of 100 fine-tuned, Adadelta, gradient norm 1, batches of 80, sentences to 100
// tokens, loss summed over a sentence. (AllenNLP averages over it and clips by value, which learns
// more slowly.) Differs: a start with I- is forbidden in decoding too; each word without a vector has
// a random one of its own, and a word that is new at prediction the untrained one of the unknown word
// (He et al.: one unknown vector, trained).
// Paper: 81.4 F1 on CoNLL-2012 test. Ours, on which data, and by which command: README.md.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/srl.libsonnet') {
  settings+: { corpus: paths.srl, words: [words.vectors(dim=100, lowercase=true)] },
}
