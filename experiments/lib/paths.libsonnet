// All paths, and the random seed. The only file that reads environment variables; the plugin sets a
// default for each of them.
local data = std.extVar('ELMO_DATA');

local text(name) = {
  train: data + '/lm/' + name + '/train.txt',
  heldout: data + '/lm/' + name + '/heldout.txt',
};

local corpus(folder, suffix) = {
  [part]: data + '/' + folder + '/' + part + '.' + suffix
  for part in ['train', 'dev', 'test']
};

local vectors(name) = if std.extVar(name) == '' then null else {
  file: std.extVar(name),
  dim: if std.extVar(name + '_DIM') != '' then std.parseInt(std.extVar(name + '_DIM'))
  else error 'Cannot read word vectors from ' + self.file + ', the value of ' + name + ': is the '
             + 'path right, and the file complete? For a URL, set ' + name + '_DIM to their width.',
  cased: std.extVar(name + '_CASED') != '',
};

{
  random_seed:
    local seed = std.extVar('ELMO_SEED');
    if std.all([std.member('0123456789', digit) for digit in std.stringChars(seed)]) && seed != ''
    then std.parseInt(seed) else error 'Expected ELMO_SEED to be a whole number, found ' + seed,
  // ELMO_BILM, or null if it is empty.
  bilm_name: if std.extVar('ELMO_BILM') == '' then null else std.extVar('ELMO_BILM'),
  bilm: {
    assert $.bilm_name == null :
           'This experiment names the two files of a biLM: unset ELMO_BILM, and set ELMO_OPTIONS '
           + 'and ELMO_WEIGHTS.',
    assert self.options_file != '' && self.weight_file != '' :
           'Expected both files of a biLM or neither: set ELMO_OPTIONS and ELMO_WEIGHTS, or ELMO_BILM '
           + 'if both are in one folder.',
    options_file: std.extVar('ELMO_OPTIONS'),
    weight_file: std.extVar('ELMO_WEIGHTS'),
    // The vocabulary of the biLM's softmax, in the folder of its weights.
    vocabulary_file: std.join('/', std.split(self.weight_file, '/')[:-1] + ['vocabulary.txt']),
  },
  // Other biLMs, for the studies: 'one_layer' (ablations/bilm_small_one_layer.jsonnet), 'medium'
  // (bilm_medium.jsonnet), and those that are fine-tuned on the text of a task. `elmo export` writes
  // the files.
  other_bilm(name): {
    bilm:: null,
    local folder = data + '/bilm/' + name + '/',
    options_file: folder + 'options.json',
    weight_file: folder + 'weights.hdf5',
  },
  // Null if the variable is empty.
  word_vectors: vectors('ELMO_GLOVE'),
  second_word_vectors: vectors('ELMO_TURIAN'),
  wide_word_vectors: vectors('ELMO_WIDE'),
  // The weights of a CoVe encoder, whose input is `word_vectors`.
  cove: std.extVar('ELMO_COVE'),
  // Tokenised text, one sentence per line.
  lm: {
    large: { train: data + '/lm/large/train-*.txt*', heldout: data + '/lm/large/heldout.txt' },
    small: text('small'),
    // The first 3,000 sentences of the held-out text.
    ladder: { heldout: data + '/lm/ladder/heldout.txt' },
    // Text of the corpora of tasks, made by scripts/task_text.py.
    snli: text('snli'),
    sst: text('sst'),
    ewt: text('ewt'),
    // The 1 Billion Word Benchmark: the two folders of its archive.
    one_billion: {
      local folder = data + '/lm/1b/',
      train: folder + 'training-monolingual.tokenized.shuffled/news.en-*',
      heldout: folder + 'heldout-monolingual.tokenized.shuffled/news.en.heldout-00001-of-00050',
    },
    // Mikolov's version of the Penn Treebank.
    ptb: { train: data + '/lm/ptb/ptb.train.txt', heldout: data + '/lm/ptb/ptb.valid.txt' },
  },
  // Files of your own. Null: no such file.
  own: {
    local file(name) = if std.extVar(name) == '' then null else std.extVar(name),
    train: if file('ELMO_TRAIN') != null then file('ELMO_TRAIN')
    else error 'This experiment reads your own files: set ELMO_TRAIN to the training data, and '
               + 'ELMO_DEV and ELMO_TEST if there are such files.',
    dev: file('ELMO_DEV'),
    test: file('ELMO_TEST'),
  },
  // Whether the tags of a training file in a column, from 1, are spans; -1 is the last column.
  has_spans(train, column):
    if train != std.extVar('ELMO_TRAIN') || std.length(std.findSubstr('://', train)) > 0
    then error "tagger: set settings.tags to 'spans' or 'plain' for the tags of " + train
    else std.member(std.split(std.extVar('ELMO_TRAIN_SPANS'), ' '), std.toString(column)),
  srl: corpus('srl', 'gold_conll'),
  coref: corpus('coref', 'gold_conll'),
  coref_litbank: corpus('coref/litbank', 'gold_conll'),
  // CoNLL-2000 has no dev split: make dev.txt from sentences of the training split.
  chunking: corpus('chunking', 'txt'),
  ner: corpus('ner', 'conll'),
  sst: corpus('sst', 'txt'),
  // The test split is not public, so dev takes its place.
  squad: {
    train: data + '/squad/train-v1.1.json',
    dev: data + '/squad/dev-v1.1.json',
    test: self.dev,
  },
  snli: {
    local part(name) = data + '/snli/snli_1.0_' + name + '.jsonl',
    train: part('train'),
    dev: part('dev'),
    test: part('test'),
  },
}
