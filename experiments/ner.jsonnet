// Named entities without ELMo: the baseline of Peters et al. (2018), section 4.
// Model and training: the paper's appendix - fine-tuned word vectors and a character CNN (16
// dimensions, 128 filters of width 3, ReLU, max pooling), BiLSTMs of 200 and 100 with variational
// dropout on the input of each, a CRF with constrained Viterbi decoding, Adam at 1e-3, gradient
// norm 5, early stopping by F1 on dev. The paper gives neither dropout rate nor batch size: 0.5 and
// 32.
// Differences: the vectors are in ELMO_GLOVE (paper: Senna's, 50 dimensions); each word of
// train and dev without a vector has its own random vector, and words that are new at prediction
// time share an untrained one (the authors: one trained vector for all unknown words); words are
// padded with one zero character on both sides, so that words of one or two letters fill a filter
// of width 3. Unlike AllenNLP's configuration, the CRF also learns scores of the first and last
// tag, the loss is averaged over the sentences of a batch (theirs: summed), batches have 32
// sentences (theirs: 64), the second BiLSTM has 100 cells (theirs: 200), and patience is 10 epochs
// (theirs: 25).
// Paper: 90.15 F1 on CoNLL-2003 test, mean of 5 runs. Ours: docs/results/table1.md.
local characters = import 'lib/characters.libsonnet';
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/ner.libsonnet') {
  settings+: {
    corpus: paths.ner,
    words: [words.vectors(dim=50), characters(dim=16, width=3, number=128)],
  },
}
