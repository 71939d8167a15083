// Question answering after Clark and Gardner (2017). No width is written twice: the model measures
// words and ELMo and builds its layers to fit.

// All a variant may change, beside what task.libsonnet lists.
local defaults = {
  hidden_size: 90,  // of each direction of the GRUs; the layers after the attentions are twice that
  dropout: 0.2,
  max_answer_length: 17,
  by_sentence: false,  // the biLM reads a passage sentence by sentence, and none is read ahead
  batch_size: 45,
  num_epochs: 24,
  decay: 0.999,  // of the moving averages of all weights, which are what is scored and saved
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
