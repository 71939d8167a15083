// Semantic role labelling after He et al. (2017). No width is written twice: the model measures
// words, ELMo and predicate mark itself and builds its encoder to fit.

// All a variant may change.
local defaults = {
  corpus: error 'srl: set settings.corpus to { train, dev }',
  words: error 'srl: set settings.words to a list from words.libsonnet',
  elmo: null,  // or elmo.libsonnet
  predicate_dim: 100,
  hidden_size: 300,
  num_layers: 8,
  recurrent_dropout: 0.1,
  max_training_tokens: 100,
  batch_size: 80,
  max_validation_tokens: 4096,  // in a batch, padding included
  num_epochs: 500,
  patience: 200,
  random_seed: 13370,
};

{
  settings:: defaults,  // hidden from AllenNLP
  local s = $.settings,
  local unknown = std.setDiff(std.objectFields(s), std.objectFields(defaults)),
  assert unknown == [] : 'srl: no such settings: ' + std.join(', ', unknown),
  assert s.words != [] : 'srl: settings.words is empty; ELMo joins words, it does not replace them',

  local reader = {
    type: 'elmo-srl',
    token_indexers: { [word.name]: word.indexer for word in s.words }
                    + if s.elmo == null then {} else { elmo: s.elmo.indexer },
  },
  dataset_reader: reader { max_tokens: s.max_training_tokens },
  validation_dataset_reader: reader,
  train_data_path: s.corpus.train,
  validation_data_path: s.corpus.dev,

  model: {
    type: 'elmo-srl',
    text_field_embedder: { token_embedders: { [word.name]: word.embedder for word in s.words } },
    predicate_dim: s.predicate_dim,
    encoder: {
      type: 'elmo-highway-lstm',
      hidden_size: s.hidden_size,
      num_layers: s.num_layers,
      recurrent_dropout: s.recurrent_dropout,
    },
  } + if s.elmo == null then {} else {
    placement: s.elmo.placement,
    regularizer: s.elmo.regularizer,
  },

  local data_loader = if s.elmo == null then {} else s.elmo.data_loader,
  data_loader: data_loader {
    batch_sampler: { type: 'bucket', batch_size: s.batch_size, sorting_keys: ['tokens'] },
  },
  // Without dropout the batch does not matter: many short sentences, or few long ones.
  validation_data_loader: data_loader {
    batch_sampler: {
      type: 'max_tokens_sampler',
      max_tokens: s.max_validation_tokens,
      sorting_keys: ['tokens'],
    },
  },
  trainer: {
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-6 },
    grad_norm: 1.0,
    num_epochs: s.num_epochs,
    patience: s.patience,
    validation_metric: '+f1-measure-overall',
  },
  random_seed: s.random_seed,
  numpy_seed: s.random_seed,
  pytorch_seed: s.random_seed,
}
