// A character CNN: `number` filters of `width` (or of each width in a list), and max pooling over
// the characters of a word.
function(dim, width, number) {
  local widest = if std.isArray(width) then std.foldl(std.max, width, 1) else width,
  name: 'characters',
  indexer: { type: 'characters', namespace: 'token_characters', min_padding_length: widest },
  embedder: {
    type: 'elmo-character-cnn',
    embedding_dim: dim,
    num_filters: number,
    width: width,
  },
}
