// Textual entailment with ESIM (Chen et al. 2017). No width is written twice: the model measures
// words and ELMo itself and builds its layers to fit.

// All a variant may change, beside what task.libsonnet lists.
local defaults = {
  hidden_size: 300,  // of each direction of both LSTMs, and of the feed-forward layers
  dropout: 0.5,
  attention_dropout: 0.0,
  batch_size: 32,
  max_validation_tokens: 4096,  // in a batch, of the premises with their padding
  num_epochs: 75,
  patience: 5,
};

(import 'task.libsonnet')('snli', defaults) {
  local s = $.settings,
  local lstm = { type: 'elmo-bilstm', hidden_size: s.hidden_size },

  model+: {
    encoder: lstm,
    composition: lstm,
    feedforward_dim: s.hidden_size,
    dropout: s.dropout,
    attention_dropout: s.attention_dropout,
  },
  data_loader+: {
    batch_sampler: {
      type: 'bucket',
      batch_size: s.batch_size,
      sorting_keys: ['premise', 'hypothesis'],
    },
  },
  // Without dropout the batch does not matter: many short pairs, or few long ones.
  validation_data_loader+: {
    batch_sampler: {
      type: 'max_tokens_sampler',
      max_tokens: s.max_validation_tokens,
      sorting_keys: ['premise', 'hypothesis'],
    },
  },
  trainer+: {
    optimizer: { type: 'adam', lr: 4e-4 },
    grad_norm: 5.0,
    learning_rate_scheduler: { type: 'elmo-reduce-on-plateau', mode: 'max', patience: 0 },
    validation_metric: '+accuracy',
  },
}
