// Semantic role labelling after He et al. (2017). No width is written twice: the model measures
// words, ELMo and predicate mark itself and builds its encoder to fit.

// All a variant may change, beside what task.libsonnet lists.
local defaults = {
  predicate_dim: 100,
  hidden_size: 300,
  num_layers: 8,
  recurrent_dropout: 0.1,
  max_training_tokens: 100,
  batch_size: 80,
  max_validation_tokens: 4096,  // in a batch, padding included
  num_epochs: 500,
  patience: 200,
};

(import 'task.libsonnet')('srl', defaults) {
  local s = $.settings,

  dataset_reader+: { max_tokens: s.max_training_tokens },
  model+: {
    predicate_dim: s.predicate_dim,
    encoder: {
      type: 'elmo-highway-lstm',
      hidden_size: s.hidden_size,
      num_layers: s.num_layers,
      recurrent_dropout: s.recurrent_dropout,
    },
  },
  data_loader+: {
    batch_sampler: { type: 'bucket', batch_size: s.batch_size, sorting_keys: ['tokens'] },
  },
  // Without dropout the batch does not matter: many short sentences, or few long ones.
  validation_data_loader+: {
    batch_sampler: {
      type: 'max_tokens_sampler',
      max_tokens: s.max_validation_tokens,
      sorting_keys: ['tokens'],
    },
  },
  trainer+: {
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-6 },
    grad_norm: 1.0,
    validation_metric: '+f1-measure-overall',
  },
}
