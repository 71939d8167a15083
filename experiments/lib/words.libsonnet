// Representations of a word: { name, indexer, embedder }.
local paths = import 'paths.libsonnet';
local file = paths.word_vectors;
local second = paths.second_word_vectors;
local wide = paths.wide_word_vectors;

// The same list with other settings of the embedders that read word vectors from a file.
local with_embedder(list, settings) = [
  if word.embedder.type == 'elmo-word-vectors' && std.objectHas(word.embedder, 'pretrained_file')
  then word { embedder+: settings } else word
  for word in list
];

{
  // Word vectors from ELMO_GLOVE, with the width of that file; words are lower-cased by default if no
  // word of the file has capitals. If the variable is empty: lower-cased words with random vectors of
  // width `dim`, which are always trained. Those from a file are trained unless `trainable` is false.
  vectors(dim, lowercase=null, trainable=true): {
    local word = self,
    file:: file,  // hidden from AllenNLP
    name: 'words',
    indexer: {
      type: 'single_id',
      lowercase_tokens: if lowercase == null then word.file == null || !word.file.cased
      else lowercase,
    },
    embedder: { type: 'elmo-word-vectors' } + if word.file == null then { embedding_dim: dim }
    else { embedding_dim: word.file.dim, pretrained_file: word.file.file, trainable: trainable },
  },

  // The same list with the vectors of another file, { file, dim, cased }, or null for random ones.
  with_file(list, file):: [
    if std.objectHasAll(word, 'file') then word { file:: file } else word
    for word in list
  ],

  // The same list with word vectors that are trained, or not.
  with_trainable(list, trainable):: with_embedder(list, { trainable: trainable }),

  // The same list, where words that the file lacks have the vectors of their lower or title case.
  with_case_fallback(list):: [
    if std.get(word.embedder, 'pretrained_file') == null then word
    else word { indexer+: { type: 'elmo-words' }, embedder+: { case_fallback: true } }
    for word in list
  ],

  // The same list with the wider word vectors of ELMO_WIDE.
  with_wide_vectors(list):: with_embedder(
    list,
    assert wide != null :
           'Wider word vectors: set ELMO_WIDE to a file trained on the text of ELMO_GLOVE.';
    { embedding_dim: wide.dim, pretrained_file: wide.file },
  ),

  // Fixed word vectors from ELMO_GLOVE, with zeros for words that the file lacks: the input of an
  // encoder of CoVe.
  fixed_vectors(dim): self.vectors(dim, trainable=file == null) {
    embedder+: if file == null then {} else { zero_unknown: true },
  },

  // The same vectors, concatenated with CoVe: a layer of the encoder in ELMO_COVE.
  cove(layer=2): self.fixed_vectors(dim=null) {
    local vectors = super.embedder,
    assert file != null : 'CoVe reads word vectors: set ELMO_GLOVE to those of ELMO_COVE.',
    assert paths.cove != '' : 'CoVe: set ELMO_COVE to an encoder that reads ELMO_GLOVE.',
    embedder: {
      type: 'elmo-cove',
      word_vectors: vectors,
      weight_file: paths.cove,
      layer: layer,
      with_words: true,
    },
  },

  // A list with the fixed vectors from ELMO_TURIAN, or an empty list if the variable is empty.
  second_vectors: if second == null then [] else [{
    name: 'second_words',
    indexer: {
      type: 'single_id',
      namespace: 'second_tokens',
      lowercase_tokens: !second.cased,
    },
    embedder: {
      type: 'elmo-word-vectors',
      embedding_dim: second.dim,
      pretrained_file: second.file,
      trainable: false,
      vocab_namespace: 'second_tokens',
    },
  }],
}
