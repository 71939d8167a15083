// Question answering without ELMo: the baseline of Peters et al. (2018), section 4.
// Model: Clark and Gardner (2017) for single paragraphs, as in the authors' program for ELMo (their
// own baseline: GRUs of 100, 26 epochs) - fixed cased word vectors, a character CNN (20 dimensions,
// 100 filters of width 5), GRUs of 90, answers of at most 17 tokens, dropout 0.2, the same for all
// tokens of a text. Training: Adadelta (rate 1, rho 0.95), batches of 45, 24 epochs; exponential
// moving averages (0.999) of the weights are evaluated and saved.
// Differences: the vectors are in ELMO_GLOVE (paper: GloVe 840B, 300 dimensions); words
// without a vector have random ones (theirs: zeros); spaCy's tokens (theirs split at more
// punctuation); in the character CNN, words are not truncated, and padded on both sides (theirs: to
// 14 characters, at the end), rare characters have embeddings, and there is no dropout; initial
// values: GRUs orthogonal (theirs: normal, 0.05), other layers PyTorch's; Adadelta's epsilon is
// 1e-6 (theirs: 1e-8, with which the loss decreases more slowly at first); the decay of the moving
// averages is smaller at first; validation after each epoch (theirs: after 1,200 batches).
// Paper: 81.1 F1 on SQuAD's hidden test set, 80.8 on dev. Ours: docs/results/table1.md.
local characters = import 'lib/characters.libsonnet';
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/squad.libsonnet') {
  settings+: {
    corpus: paths.squad,
    words: [
      words.vectors(dim=300, trainable=false),
      characters(dim=20, width=5, number=100),
    ],
  },
}
