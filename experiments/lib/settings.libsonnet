// Checks the settings of an experiment: the names, and the kind of each value.

local is_whole(value) = std.isNumber(value) && value == std.floor(value);
local is_from(value, least) = std.isNumber(value) && value >= least;
local is_size(value) = is_whole(value) && value >= 1;
local is_rate(value) = is_from(value, 0) && value < 1;
local all(test, values) = std.isArray(values) && std.all(std.map(test, values));
local has(fields, value) =
  std.isObject(value) && std.all([std.objectHasAll(value, field) for field in fields]);

// What is expected, and whether a value is that.
local size = ['a whole number of at least 1', is_size];
local sizes = ['a list of whole numbers of at least 1', function(value) all(is_size, value)];
local count = ['a whole number of at least 0', function(value) is_whole(value) && value >= 0];
local above_0 = ['a number above 0', function(value) is_from(value, 0) && value > 0];
local from_0 = ['a number of at least 0', function(value) is_from(value, 0)];
local counts = ['a list of whole numbers of at least 0', function(v) all(count[1], v)];
local rate = ['a number from 0 to below 1', is_rate];
local rates = ['a list of numbers from 0 to below 1', function(value) all(is_rate, value)];
local share = ['a number above 0 and at most 1', function(v) is_from(v, 0) && v > 0 && v <= 1];
local flag = ['true or false', std.isBoolean];
local text = ['a string', std.isString];
local one_of(names) = ['one of ' + std.join(', ', names), function(v) std.member(names, v)];
local list = ['a list', std.isArray];
local object = ['an object', std.isObject];
local nothing = ['null', function(value) value == null];
local corpus = [
  'an object { train, dev }, or { train, heldout } for a language model',
  function(value) has(['train', 'dev'], value) || has(['train', 'heldout'], value),
];
local words = [
  'a list from words.libsonnet',
  function(value) all(function(word) has(['name', 'indexer', 'embedder'], word), value),
];
local files = [
  'an object { options_file, weight_file }',
  function(value) has(['options_file', 'weight_file'], value),
];

// The kinds that a setting may be; the same name means the same in all tasks.
local kinds = {
  // Of all tasks.
  corpus: [corpus],
  words: [words],
  elmo: [object, nothing],
  batch_size: [size],
  max_validation_tokens: [size],
  penalties: [list],
  num_epochs: [size],
  save_every_num_batches: [size, nothing],
  fraction: [share],
  max_validation_instances: [size, nothing],
  patience: [size, nothing],
  mixed_precision: [flag],
  dtype: [text],
  random_seed: [count],
  learning_rate: [above_0],
  dropout: [rate],
  hidden_size: [size],
  // Of some.
  attention_dropout: [rate],
  by_sentence: [flag],
  classifier_dims: [sizes],
  classifier_dropout: [rates],
  decay: [rate],
  feedforward_dim: [size],
  feedforward_dropout: [rate],
  granularity: [one_of(['5-class', '2-class'])],
  hidden_sizes: [sizes],
  initializer: [object, nothing],
  lexical_dropout: [rate],
  max_answer_length: [size],
  max_training_sentences: [size, nothing],
  max_training_tokens: [size, nothing],
  min_phrase_tokens: [size, nothing],
  num_layers: [size],
  pooled_dropout: [rate],
  predicate_dim: [size],
  recurrent_dropout: [rate],
  scheduler_patience: [count],
  scoring: [object],
  tag_column: [size, nothing],
  type: [text],
  // Of files of your own.
  dev_fraction: [rate],
  hypothesis: [text],
  label: [text],
  premise: [text],
  tag: [one_of(['upos', 'xpos', 'feats', 'deprel'])],
  tags: [one_of(['spans', 'plain']), nothing],
  text: [text],
  tokenize: [text],
  // Of `scoring`.
  feature_dim: [size],
  max_antecedents: [size],
  max_span_width: [size],
  spans_per_word: [above_0],
  // Of ELMo.
  at: [one_of(['input', 'output', 'both'])],
  bilm: [text, nothing],
  cache: [flag, text],
  fixed_weights: [list, nothing],
  lambda: [from_0],
  layer_norm: [flag],
  layers: [one_of(['all', 'last']), counts],
  options_file: [text, nothing],
  stateful: [flag],
  trainable: [flag],
  warm_up: [flag],
  weight_file: [text, nothing],
  // Of language models.
  accumulate: [size],
  activation: [text],
  batches: [object],
  bidirectional: [flag],
  cell_clip: [above_0, nothing],
  character_dim: [size],
  character_projection: [flag],
  dim: [size],
  filters: [list, nothing],
  grad_norm: [above_0, nothing],
  heldout_batches: [object],
  initial: [files, nothing],
  keep_checkpoints: [size, nothing],
  max_characters_per_token: [size],
  moving_average: [object, text, nothing],
  n_highway: [count],
  n_layers: [size],
  num_samples: [size, nothing],
  num_words: [size, nothing],
  num_workers: [count],
  optimizer: [object, text],
  processes: [list, nothing],
  proj_clip: [above_0, nothing],
  projection_dim: [size, nothing],
  schedule: [object, text, nothing],
  use_skip_connections: [flag],
  vocabulary_file: [text, nothing],
};

// True, or an error that names the setting. `known` are the defaults, `unused` the names of settings
// that another one replaces.
local check(owner, given, known, unused=[]) =
  local unknown = std.setDiff(std.objectFields(given), std.objectFields(known));
  local missing = std.setDiff(std.objectFields(known), std.objectFieldsAll(given));
  assert unknown == [] : '%s: no such settings: %s; there are %s'
                         % [owner, std.join(', ', unknown), std.join(', ', std.objectFields(known))];
  assert missing == [] : '%s: settings lack %s: write settings+:' % [owner, std.join(', ', missing)];
  std.all([
    assert std.any([kind[1](given[name]) for kind in kinds[name]]) :
           '%s: expected `%s` to be %s, found %s'
           % [
      owner,
      name,
      std.join(' or ', [kind[0] for kind in kinds[name]]),
      std.manifestJsonMinified(given[name]),
    ];
    name != 'scoring' || check(owner + '.scoring', given.scoring, known.scoring)
    for name in std.setDiff(std.objectFields(given), std.set(unused))
  ]);

check
