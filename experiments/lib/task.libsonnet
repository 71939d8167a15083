// Settings that all tasks share: words, ELMo, batches, seeds. A task adds its model and training.
//
//   local task = import 'task.libsonnet';
//   task('ner', ['tokens'], { hidden_size: 200, batch_size: 32 }) {
//     local s = $.settings,
//     model+: { hidden_size: s.hidden_size },
//     ...
//   }

local paths = import 'paths.libsonnet';
local check = import 'settings.libsonnet';

local shared(name) = {
  type: 'elmo-' + name,  // the registered name of reader and model
  corpus: error name + ': set settings.corpus to { train, dev }',
  words: error name + ': set settings.words to a list from words.libsonnet',
  elmo: null,  // or elmo.libsonnet
  batch_size: error name + ': set settings.batch_size',
  max_validation_tokens: 4096,  // per batch, of the longer text, with padding
  penalties: [],  // AllenNLP's regularizers, each [pattern, { type, alpha }]
  num_epochs: error name + ': set settings.num_epochs',
  save_every_num_batches: 1000,  // and after each epoch: the checkpoints of `--recover`
  fraction: 1,  // of the training data, a random sample
  // The first instances of dev, if that is enough to choose the best epoch. Null: all.
  max_validation_instances: null,
  patience: null,  // training stops after so many epochs without a better score on dev
  // Matrix products of training in bfloat16: up to twice as fast on CPUs with instructions for it.
  mixed_precision: false,
  dtype: 'float32',  // or 'bfloat16': of products in validation, evaluation and prediction
  random_seed: paths.random_seed,
};

// `texts` are the fields by whose lengths instances are sorted into batches.
function(name, texts, defaults) {
  local known = shared(name) + defaults,
  settings:: known,  // hidden from AllenNLP
  local s = $.settings,

  local elmo = if s.elmo == null then { indexers: {}, regexes: [], data_loader: {} } else {
    indexers: { elmo: s.elmo.indexer },
    regexes: s.elmo.regularizer.regexes,
    data_loader: s.elmo.data_loader,
  },
  local penalties = s.penalties + elmo.regexes,

  local reader = {
    type: s.type,
    token_indexers: { [word.name]: word.indexer for word in s.words } + elmo.indexers,
  },
  dataset_reader: reader + if s.fraction == 1 then {}
  else { fraction: s.fraction, fraction_seed: s.random_seed },
  validation_dataset_reader: reader + if s.max_validation_instances == null then {}
  else { max_instances: s.max_validation_instances },
  train_data_path: s.corpus.train,
  validation_data_path: s.corpus.dev,
  model: {
    type: s.type,
    text_field_embedder: { token_embedders: { [word.name]: word.embedder for word in s.words } },
    [if s.elmo != null then 'placement']: s.elmo.placement,
    [if penalties != [] then 'regularizer']: { regexes: penalties },
    [if s.dtype != 'float32' then 'dtype']: s.dtype,
  },
  // Checked here and not in an `assert` of the object, which jsonnet would compute for each field.
  // This field is the first that it computes.
  data_loader:
    assert check(name, s, known);
    assert s.elmo == null || std.objectHasAll(s.elmo, 'placement') :
           name + ': settings.elmo lacks what elmo.libsonnet has: write elmo+:';
    assert s.words != [] :
           name + ': settings.words is empty; ELMo is added to words and does not replace them';
    elmo.data_loader {
      batch_sampler: { type: 'bucket', batch_size: s.batch_size, sorting_keys: texts },
    },
  // Batches do not change the score, so each holds many short texts or a few long ones.
  validation_data_loader: elmo.data_loader {
    batch_sampler: {
      type: 'max_tokens_sampler',
      max_tokens: s.max_validation_tokens,
      sorting_keys: texts,
    },
  },
  trainer: {
    type: 'elmo-recoverable',
    num_epochs: s.num_epochs,
    patience: s.patience,
    [if s.mixed_precision then 'mixed_precision']: true,
    checkpointer: { type: 'elmo-atomic', save_every_num_batches: s.save_every_num_batches },
  },
  random_seed: s.random_seed,
  numpy_seed: s.random_seed,
  pytorch_seed: s.random_seed,
}
