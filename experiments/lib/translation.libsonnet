// Translation with attention: McCann et al. (2017), section 3. Its encoder is CoVe. The model
// derives the width of the encoder's input from its word representations.

// The settings that a variant may change, besides those of task.libsonnet.
local defaults = {
  source_language: 'en',
  target_language: 'de',
  min_count: 2,  // of a target word in the training text; rarer words are unknown
  hidden_size: 300,  // per direction of the encoder
  decoder_dim: 300,
  target_embedding_dim: 300,
  dropout: 0.2,
  beam_size: 5,
  mixed_precision: true,
  max_tokens: 1024,  // per batch, of the longer text, with padding
  learning_rate: 1e-3,
  warmup_steps: 100,
  num_epochs: 10,
};

(import 'task.libsonnet')('translation', ['target', 'source'], defaults) {
  local s = $.settings,
  local languages = { source_language: s.source_language, target_language: s.target_language },

  dataset_reader+: languages,
  validation_dataset_reader+: languages,
  vocabulary: { min_count: { target_tokens: s.min_count } },
  model+: {
    hidden_size: s.hidden_size,
    decoder_dim: s.decoder_dim,
    target_embedding_dim: s.target_embedding_dim,
    dropout: s.dropout,
    beam_size: s.beam_size,
  },
  data_loader+: {
    batch_sampler: {
      type: 'max_tokens_sampler',
      max_tokens: s.max_tokens,
      sorting_keys: ['target', 'source'],
    },
  },
  trainer+: {
    optimizer: { type: 'elmo-adam', lr: s.learning_rate },
    grad_norm: 5.0,
    learning_rate_scheduler: { type: 'linear_with_warmup', warmup_steps: s.warmup_steps },
    validation_metric: '+BLEU',
  },
}
