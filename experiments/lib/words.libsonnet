// Representations of a word: { name, indexer, embedder }.
local paths = import 'paths.libsonnet';

{
  // Word vectors from ELMO_GLOVE; learned from nothing when that is empty. Fine-tuned unless
  // `trainable` is false. `dim` must be that of the file.
  vectors(dim, lowercase=true, trainable=true): {
    name: 'words',
    indexer: { type: 'single_id', lowercase_tokens: lowercase },
    embedder: {
      type: 'embedding',
      embedding_dim: dim,
      trainable: trainable,
      [if paths.word_vectors != '' then 'pretrained_file']: paths.word_vectors,
    },
  },
}
