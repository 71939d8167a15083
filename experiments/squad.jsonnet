// Question answering without ELMo: the baseline of Peters et al. (2018), section 4.
// Model: Clark and Gardner (2017) for one paragraph, as in the authors' program - word vectors with
// case, fixed, beside a CNN over characters (20 wide, 100 filters over 5), GRUs of 90, answers of 17
// tokens at most, dropout 0.2, the same for all tokens of a text. Training: Adadelta at 1 and 0.95,
// batches of 45, 24 epochs; scored and saved are moving averages of the weights (0.999).
// Differs: the vectors are those of ELMO_GLOVE (paper: 300 of GloVe's 840B), and a word without one
// has a random one (theirs: zeros); words are spaCy's (theirs end at more punctuation), spelled to
// their end with zeros on both sides (theirs: 14 characters, zeros behind), with vectors for rare
// characters too and no dropout; GRUs begin orthogonal (theirs: normal, 0.05), other layers as
// PyTorch's; Adadelta's epsilon is 1e-6 (theirs: 1e-8, with which the loss falls more slowly at first);
// averages are shorter at first; the best weights are sought after epochs (theirs: 1,200 batches).
// Paper: 81.1 F1 on SQuAD's hidden test set, 80.8 on dev. Ours, and by which command: README.md.
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
