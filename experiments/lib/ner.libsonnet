// Tagging of words after Peters et al. (2017, 2018): named entities, or any other tags. The model
// derives all widths from its word representations and ELMo.
local own = import 'own.libsonnet';
local paths = import 'paths.libsonnet';

// The settings that a variant may change, besides task.libsonnet's.
local defaults = own.settings {
  tag_column: null,  // counted from 1; null: the last one
  tag: 'upos',  // in CoNLL-U, or 'xpos', 'feats', 'deprel'
  // 'spans', with a metric for them, or 'plain'. Null: as in all of the file that ELMO_TRAIN names.
  tags: 'spans',
  hidden_sizes: [200, 100],  // of the lower and the upper BiLSTM, per direction
  dropout: 0.5,  // of the input of each
  batch_size: 32,
  learning_rate: 1e-3,
  num_epochs: 75,
  patience: 10,
};

(import 'task.libsonnet')('ner', ['tokens'], defaults) {
  local s = $.settings,
  local is_conllu = std.endsWith(std.strReplace(s.corpus.train, '.gz', ''), '.conllu'),
  local column = if is_conllu then { upos: 4, xpos: 5, feats: 6, deprel: 8 }[s.tag]
  else if s.tag_column == null then -1 else s.tag_column,
  local tags = if s.tags != null then s.tags
  else if paths.has_spans(s.corpus.train, column) then 'spans' else 'plain',

  local fields = own.fields(s { tags: tags }, { tag: 'upos', tags: 'spans' }),
  local columns = { tag_column: s.tag_column },
  dataset_reader+: columns + fields.dataset_reader,
  validation_dataset_reader+: columns + fields.validation_dataset_reader,
  validation_data_path: fields.validation_data_path,

  local bilstm(hidden_size) = { type: 'elmo-bilstm', hidden_size: hidden_size },
  model+: {
    [if tags != 'spans' then 'tags']: tags,
    lower_encoder: bilstm(s.hidden_sizes[0]),
    upper_encoder: bilstm(s.hidden_sizes[1]),
    dropout: s.dropout,
  },
  trainer+: {
    optimizer: { type: 'adam', lr: s.learning_rate },
    grad_norm: 5.0,
    validation_metric: if tags == 'spans' then '+f1-measure-overall' else '+accuracy',
  },
}
