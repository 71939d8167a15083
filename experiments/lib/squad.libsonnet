// Question answering after Clark and Gardner (2017). The model derives all widths from its word
// representations and ELMo.

// The settings that a variant may change, besides task.libsonnet's.
local defaults = {
  hidden_size: 90,  // per direction of the GRUs; layers after the attentions are twice as wide
  dropout: 0.2,
  max_answer_length: 17,
  by_sentence: false,  // true: the biLM processes each sentence of a passage separately
  batch_size: 45,
  num_epochs: 24,
  decay: 0.999,  // of the moving averages of all weights, which are evaluated and saved
};

(import 'task.libsonnet')('squad', ['passage', 'question'], defaults) {
  local s = $.settings,

  dataset_reader+: { by_sentence: s.by_sentence },
  validation_dataset_reader+: { by_sentence: s.by_sentence },
  model+: {
    encoder: { type: 'elmo-bigru', hidden_size: s.hidden_size },
    dropout: s.dropout,
    max_answer_length: s.max_answer_length,
  },
  trainer+: {
    optimizer: { type: 'adadelta', lr: 1.0, rho: 0.95, eps: 1e-6 },
    moving_average: { type: 'elmo-exponential', decay: s.decay },
    validation_metric: '+f1',
  },
}
