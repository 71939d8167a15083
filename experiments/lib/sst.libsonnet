// Sentiment, or any other labels of texts: the biattentive classification network of McCann et al.
// (2017) with ReLU layers. The model derives all widths from its word representations and ELMo.
local own = import 'own.libsonnet';

// The settings that a variant may change, besides task.libsonnet's.
local defaults = own.settings {
  text: 'text',  // the columns of .csv, .tsv and .jsonl
  label: 'label',
  granularity: '5-class',  // or '2-class': SST-2
  min_phrase_tokens: 4,  // phrases to train on; null: whole sentences only
  dropout: 0.25,  // on the token vectors, including ELMo at the input
  feedforward_dim: 300,
  feedforward_dropout: 0.25,
  hidden_size: 300,  // per direction, of encoder and integrator
  pooled_dropout: 0.1,
  classifier_dims: [1200, 600],
  classifier_dropout: [0.2, 0.3],
  learning_rate: 1e-4,
  batch_size: 100,
  num_epochs: 40,
  patience: 5,
};

(import 'task.libsonnet')('sst', ['tokens'], defaults) {
  local s = $.settings,

  local fields = own.fields(s, { text: 'text', label: 'label' }),

  local classes = { granularity: s.granularity },
  dataset_reader+: classes { min_phrase_tokens: s.min_phrase_tokens } + fields.dataset_reader,
  validation_dataset_reader+: classes + fields.validation_dataset_reader,
  validation_data_path: fields.validation_data_path,

  local bilstm = { type: 'elmo-bilstm', hidden_size: s.hidden_size },
  local relu(dims, dropout) = {
    num_layers: std.length(dims),
    hidden_dims: dims,
    activations: 'relu',
    dropout: dropout,
  },
  model+: {
    dropout: s.dropout,
    pooled_dropout: s.pooled_dropout,
    feedforward: relu([s.feedforward_dim], [s.feedforward_dropout]),
    encoder: bilstm,
    integrator: bilstm,
    classifier: relu(s.classifier_dims, s.classifier_dropout),
  },
  trainer+: {
    optimizer: { type: 'adam', lr: s.learning_rate },
    grad_norm: 5.0,
    validation_metric: '+accuracy',
  },
}
