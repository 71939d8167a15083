// Representations of a word: { name, indexer, embedder }.
local paths = import 'paths.libsonnet';
local file = paths.word_vectors;

{
  // Word vectors from ELMO_GLOVE, as wide and in the case that they are there; where that is empty,
  // `dim` wide and learned from nothing. Fine-tuned unless `trainable` is false.
  vectors(dim, lowercase=file == null || !file.cased, trainable=true): {
    name: 'words',
    indexer: { type: 'single_id', lowercase_tokens: lowercase },
    embedder: { type: 'elmo-word-vectors' } + if file == null then { embedding_dim: dim }
    else { embedding_dim: file.dim, pretrained_file: file.file, trainable: trainable },
  },
}
