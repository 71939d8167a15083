// Translation from English to German, which trains an encoder for CoVe. On Multi30k, the default
// corpus, it is CoVe-S, the smallest one of McCann et al. (2017).
// Model: section 3 of that paper - fixed word vectors, zeros for words without one, an encoder of
// two bidirectional LSTM layers of 300, and a decoder of two LSTM layers with attention and input
// feeding; dropout 0.2 on inputs and outputs of all layers.
// Differences, for a run of less than an hour on two cores: the decoder is 300 wide, and its
// initial hidden states are linear maps of the encoder's final ones (the authors' program: 600,
// copied, cell states too); Adam at a rate that rises to 1e-3 in 100 steps and falls linearly over
// 10 epochs, in batches of 1,024 tokens, gradients clipped to a norm of 5 (paper: SGD at 1, halved
// after each epoch once the perplexity on dev has risen); products in bfloat16. Also different:
// spaCy's tokenisation, translations keep their upper case, target words that occur once are
// unknown, and the word vectors are those of ELMO_GLOVE (paper: GloVe, 840B tokens, 300
// dimensions).
// Paper: no BLEU for CoVe-S that we know of; CoVe is evaluated by the scores of tasks, as in
// sst_cove.jsonnet. Ours: README.md.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/translation.libsonnet') {
  settings+: { corpus: paths.mt, words: [words.fixed_vectors(dim=300)] },
}
