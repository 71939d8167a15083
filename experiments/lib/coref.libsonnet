// Coreference after Lee et al. (2017). The model derives all widths from its word representations
// and ELMo.

// The settings that a variant may change, besides task.libsonnet's.
local defaults = {
  hidden_size: 200,  // per direction
  lexical_dropout: 0.5,  // on words
  scoring: {
    max_span_width: 10,
    spans_per_word: 0.4,
    max_antecedents: 250,
    feedforward_dim: 150,
    feature_dim: 20,
    dropout: 0.2,
  },
  max_training_sentences: 50,
  batch_size: 1,  // documents
  learning_rate: 1e-3,
  num_epochs: 150,
  patience: 10,
};

(import 'task.libsonnet')('coref', ['sentences'], defaults) {
  local s = $.settings,

  model+: {
    encoder: { type: 'elmo-bilstm', hidden_size: s.hidden_size },
    lexical_dropout: s.lexical_dropout,
    scoring: s.scoring,
    max_training_sentences: s.max_training_sentences,
  },
  // Documents are long, so larger batches are not faster.
  validation_data_loader+: { batch_sampler:: null, batch_size: 1 },
  trainer+: {
    optimizer: { type: 'adam', lr: s.learning_rate },
    learning_rate_scheduler: { type: 'elmo-decay-by-batches', factor: 0.999, num_batches: 100 },
    grad_norm: 5.0,
    validation_metric: '+coref_f1',
  },
}
