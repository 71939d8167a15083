// Named entities without ELMo: the baseline of Peters et al. (2018), section 4.
// Model and training: their appendix - word vectors fine-tuned, beside them a CNN over characters
// (16 wide, 128 filters over 3, ReLU, maximum), BiLSTMs of 200 and 100 with variational dropout on
// the input of each, a CRF with Viterbi over legal tags, Adam at 1e-3, gradient norm 5, stopped
// early by F1 on dev. The paper names neither the rate of the dropout nor the batch: 0.5 and 32.
// Differs: the vectors are those of ELMO_GLOVE (paper: 50 of Senna); each word without a vector has a
// random one of its own, and a word that is new at prediction the untrained one of the unknown word
// (the authors: one unknown vector, trained); a zero stands before and after a word's characters, so
// that words of one or two letters have a window of three too. From AllenNLP's configuration differ:
// the CRF also learns scores of the first and the last tag, and patience is 10 epochs (theirs: 25).
// Paper: 90.15 F1 on CoNLL-2003 test, mean of 5 runs. Ours, and by which command: README.md.
local characters = import 'lib/characters.libsonnet';
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/ner.libsonnet') {
  settings+: {
    corpus: paths.ner,
    words: [words.vectors(dim=50), characters(dim=16, width=3, number=128)],
  },
}
