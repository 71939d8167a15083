// Coreference without ELMo: the baseline of Peters et al. (2018), section 4.
// Model: Lee et al. (2017), as in the authors' program - word vectors fixed, of ELMO_GLOVE and, if
// there are any, of ELMO_TURIAN; a CNN over characters (8 wide, 50 filters over 3, 4 and 5 each); a
// BiLSTM of 200 over each sentence; spans of up to 10 words, of which 0.4 per word are kept, none
// that crosses a better one; 250 antecedents; networks of two layers of 150; 20 numbers each for
// width, distance, speaker and genre; dropout 0.5 on words, 0.2 elsewhere. Training: Adam at 0.001,
// 0.999 of that after each 100 documents, gradient norm 5, documents cut to 50 sentences, 150
// epochs (400,000 documents are 143 of OntoNotes). Not in the paper: an end after 10 epochs without
// a better F1 on dev.
// Differs: theirs scales word vectors to length 1 and has zeros for unknown words, where ours takes
// them as they are, and random ones; its LSTM has one gate for input and forgetting, learned first
// states, and dropout within and on each token of its output, where ours drops the same numbers of
// the output for all tokens of a sentence; ours drops features once for a whole batch or document.
// Zeros stand before and after a word's characters, not after them alone.
// Paper: 67.2 average F1 on CoNLL-2012 test. Ours, on which data, and by which command: README.md.
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
