// Named entity recognition after Peters et al. (2017, 2018). The model derives all widths from its
// word representations and ELMo.

// The settings that a variant may change, besides task.libsonnet's.
local defaults = {
  tag_column: null,  // counted from 1; null: the last one
  hidden_sizes: [200, 100],  // of the lower and the upper BiLSTM, per direction
  dropout: 0.5,  // of the input of each
  batch_size: 32,
  learning_rate: 1e-3,
  num_epochs: 75,
  patience: 10,
};

(import 'task.libsonnet')('ner', ['tokens'], defaults) {
  local s = $.settings,

  local columns = { tag_column: s.tag_column },
  dataset_reader+: columns,
  validation_dataset_reader+: columns,

  local bilstm(hidden_size) = { type: 'elmo-bilstm', hidden_size: hidden_size },
  model+: {
    lower_encoder: bilstm(s.hidden_sizes[0]),
    upper_encoder: bilstm(s.hidden_sizes[1]),
    dropout: s.dropout,
  },
  trainer+: {
    optimizer: { type: 'adam', lr: s.learning_rate },
    grad_norm: 5.0,
    validation_metric: '+f1-measure-overall',
  },
}
