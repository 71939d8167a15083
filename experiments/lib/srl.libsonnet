// Semantic role labelling after He et al. (2017). The model derives all widths from its word
// representations and ELMo.

// The settings that a variant may change, besides task.libsonnet's.
local defaults = {
  predicate_dim: 100,
  hidden_size: 300,
  num_layers: 8,
  recurrent_dropout: 0.1,
  max_training_tokens: 100,
  batch_size: 80,
  num_epochs: 500,
  patience: 200,
};

(import 'task.libsonnet')('srl', ['tokens'], defaults) {
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
  trainer+: {
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-6 },
    grad_norm: 1.0,
    validation_metric: '+f1-measure-overall',
  },
}
