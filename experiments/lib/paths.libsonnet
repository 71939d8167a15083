// Where everything is. Alone reads the environment; the plugin gives each variable a default.
local data = std.extVar('ELMO_DATA');

{
  bilm: { options_file: std.extVar('ELMO_OPTIONS'), weight_file: std.extVar('ELMO_WEIGHTS') },
  // Empty for none.
  word_vectors: std.extVar('ELMO_GLOVE'),
  lm: {
    train: data + '/lm/large/train-*.txt*',
    heldout: data + '/lm/large/heldout.txt',
  },
  srl: {
    train: data + '/srl/train.gold_conll',
    dev: data + '/srl/dev.gold_conll',
  },
}
