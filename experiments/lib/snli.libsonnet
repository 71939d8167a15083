// Textual entailment, or any other labels of pairs of texts, with ESIM (Chen et al. 2017). The model
// derives all widths from its word representations and ELMo.
local own = import 'own.libsonnet';

// The settings that a variant may change, besides task.libsonnet's.
local defaults = own.settings {
  premise: 'premise',  // the columns of .csv, .tsv and .jsonl, which elmo-pairs reads
  hypothesis: 'hypothesis',
  label: 'label',
  hidden_size: 300,  // per direction of both LSTMs, and of the feed-forward layers
  dropout: 0.5,
  attention_dropout: 0.0,
  initializer: null,  // of both LSTMs; null: orthogonal recurrent weights, see `initial_layer`
  batch_size: 32,
  num_epochs: 75,
  patience: 5,
  // The learning rate is halved after more than so many epochs without a better accuracy on dev.
  scheduler_patience: 0,
};

(import 'task.libsonnet')('snli', ['premise', 'hypothesis'], defaults) {
  local s = $.settings,
  local lstm = {
    type: 'elmo-bilstm',
    hidden_size: s.hidden_size,
    [if s.initializer != null then 'initializer']: s.initializer,
  },

  local columns = ['premise', 'hypothesis', 'label'],
  local fields = own.fields(s, { [name]: name for name in columns }),
  dataset_reader+: fields.dataset_reader,
  validation_dataset_reader+: fields.validation_dataset_reader,
  validation_data_path: fields.validation_data_path,

  model+: {
    encoder: lstm,
    composition_encoder: lstm,
    feedforward_dim: s.hidden_size,
    dropout: s.dropout,
    attention_dropout: s.attention_dropout,
  },
  trainer+: {
    optimizer: { type: 'adam', lr: 4e-4 },
    grad_norm: 5.0,
    learning_rate_scheduler: {
      type: 'elmo-reduce-on-plateau',
      mode: 'max',
      patience: s.scheduler_patience,
    },
    validation_metric: '+accuracy',
  },
}
