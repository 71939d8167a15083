// A language model trained on text: reader, vocabulary, model and training. Reader and model take
// their widths from one place: `options`, with the fields of an options.json, or, to fine-tune, the
// options file of the biLM.

local paths = import 'paths.libsonnet';
local check = import 'settings.libsonnet';

// The settings that a variant may change.
local defaults = {
  corpus: error 'bilm: set settings.corpus to { train, heldout }',
  // Null: one embedding per word of the vocabulary, instead of the character CNN.
  filters: error 'bilm: set settings.filters to a list of [width, number], or to null',
  character_dim: 16,
  max_characters_per_token: 50,
  activation: 'relu',  // or 'tanh'
  n_highway: 2,
  character_projection: true,  // false: the input of the LSTM is the output of the highway layers
  dim: error 'bilm: set settings.dim to the number of cells',
  projection_dim: null,  // null: no projection
  n_layers: 2,
  cell_clip: 3,
  proj_clip: 3,
  use_skip_connections: true,
  bidirectional: true,
  num_words: error 'bilm: set settings.num_words to the size of the vocabulary, null for all words',
  vocabulary_file: null,  // from `allennlp elmo-vocabulary`; null: counted from the text
  num_samples: 8192,  // null: full softmax
  dropout: 0.1,
  mixed_precision: false,
  initializer: null,  // of AllenNLP; null: bilm-tf's
  // { options_file, weight_file }: the biLM to fine-tune; its widths replace those above. Optional
  // vocabulary_file: the vocabulary of its softmax, if not vocabulary.txt in the same folder.
  initial: null,
  batches: { order: 'streams', batch_size: 128, num_steps: 20 },
  heldout_batches: { order: 'sentences', tokens_per_batch: 4096 },
  num_workers: 1,
  optimizer: error 'bilm: set settings.optimizer to one of AllenNLP or elmo-adagrad, elmo-adam, ' +
                   'elmo-muon',
  schedule: null,
  grad_norm: null,  // null: gradients are not clipped
  moving_average: null,  // of AllenNLP, or elmo-exponential
  num_epochs: 10,
  processes: null,  // or a list of devices (-1: CPU), one process each, which share a batch
  accumulate: 1,
  save_every_num_batches: 2000,
  keep_checkpoints: 2,  // null: all, for scripts/learning_curve.py
  random_seed: paths.random_seed,
};

{
  settings:: defaults,  // hidden from AllenNLP
  local s = $.settings,

  local options = {
    bidirectional: s.bidirectional,
    [if s.filters != null then 'char_cnn']: {
      activation: s.activation,
      embedding: { dim: s.character_dim },
      filters: s.filters,
      max_characters_per_token: s.max_characters_per_token,
      n_characters: 262,
      n_highway: s.n_highway,
      [if !s.character_projection then 'projection']: false,
    },
    lstm: {
      cell_clip: s.cell_clip,
      dim: s.dim,
      n_layers: s.n_layers,
      proj_clip: s.proj_clip,
      projection_dim: s.projection_dim,
      use_skip_connections: s.use_skip_connections,
    },
  },

  local shape = if s.initial == null then { options: options }
  else { options_file: s.initial.options_file },

  dataset_reader: { type: 'elmo-bilm' } + shape,
  train_data_path: s.corpus.train,
  validation_data_path: s.corpus.heldout,
  vocabulary: { type: 'elmo-bilm' } + if s.vocabulary_file == null
  then { text: s.corpus.train, size: s.num_words }
  else { file: s.vocabulary_file, size: s.num_words },
  model: {
    type: 'elmo-bilm',
    num_samples: s.num_samples,
    dropout: s.dropout,
    mixed_precision: s.mixed_precision,
    [if s.initializer != null then 'initializer']: s.initializer,
    [if s.initial != null then 'initial_weights']: {
      file: s.initial.weight_file,
      vocabulary_file: std.get(s.initial, 'vocabulary_file'),
    },
    seed: s.random_seed,
  } + shape,
  // The first field that jsonnet computes. Widths that those of `initial` replace have no defaults.
  data_loader:
    assert check('bilm', s, defaults, if s.initial == null then [] else ['dim', 'filters']);
    { type: 'elmo-bilm', num_workers: s.num_workers, seed: s.random_seed } + s.batches,
  validation_data_loader: { type: 'elmo-bilm', shuffle: false } + s.heldout_batches,
  trainer: {
    type: 'elmo-bilm',
    optimizer: s.optimizer,
    [if s.schedule != null then 'learning_rate_scheduler']: s.schedule,
    [if s.grad_norm != null then 'grad_norm']: s.grad_norm,
    [if s.moving_average != null then 'moving_average']: s.moving_average,
    num_epochs: s.num_epochs,
    num_gradient_accumulation_steps: s.accumulate,
    validation_metric: '-perplexity',
    [if s.initial != null then 'callbacks']: [{ type: 'elmo-evaluate-before' }],
    checkpointer: {
      type: 'elmo-atomic',
      save_every_num_batches: s.save_every_num_batches,
      keep_most_recent_by_count: s.keep_checkpoints,
    },
    run_confidence_checks: false,
  },
  distributed: if s.processes == null then null else { cuda_devices: s.processes },
  evaluate_on_test: false,
  random_seed: s.random_seed,
  numpy_seed: s.random_seed,
  pytorch_seed: s.random_seed,
}
