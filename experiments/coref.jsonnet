// Coreference without ELMo: the baseline of Peters et al. (2018), section 4.
// Model: Lee et al. (2017), as in the authors' program - fixed word vectors (ELMO_GLOVE and, if
// set, ELMO_TURIAN; the paper: GloVe of 300 and Turian's of 50 dimensions); a character CNN (8
// dimensions, 50 filters each of widths 3, 4 and 5); a BiLSTM of 200 over each sentence; spans of
// up to 10 words, of which pruning keeps 0.4 per word, without crossing spans; 250 antecedents;
// feed-forward networks with two layers of 150; embeddings of 20 dimensions for span width,
// distance, speaker and genre; dropout 0.5 on words, 0.2 elsewhere.
// Training: Adam at 0.001, multiplied by 0.999 after every 100 documents, gradient norm 5,
// documents truncated to 50 sentences, 150 epochs (400,000 documents are 143 epochs of OntoNotes).
// Not in the paper: training stops after 10 epochs without a better F1 on dev.
// Differences: word vectors are not normalised (theirs: to length 1), and random for unknown words
// (theirs: zeros); the LSTM has separate input and forget gates and zero initial states (theirs:
// coupled gates, learned initial states); dropout of its output is the same for all tokens of a
// sentence (theirs: independent for each token), dropout of feature embeddings the same for a whole
// batch or document; the character CNN pads words with zeros on both sides (theirs: at the end).
// Paper: 67.2 average F1 on CoNLL-2012 test. Ours: docs/results/table1.md.
local characters = import 'lib/characters.libsonnet';
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/coref.libsonnet') {
  settings+: {
    corpus: paths.coref,
    words: [
      words.vectors(dim=300, trainable=false),
      characters(dim=8, width=[3, 4, 5], number=50),
    ] + words.second_vectors,
  },
}
