// A word as its characters: a CNN over them, the maximum of each of `number` filters over `width`.
function(dim, width, number) {
  name: 'characters',
  indexer: { type: 'characters', namespace: 'token_characters', min_padding_length: width },
  embedder: {
    type: 'elmo-character-cnn',
    embedding_dim: dim,
    num_filters: number,
    width: width,
  },
}
