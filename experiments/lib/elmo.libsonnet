// ELMo in an experiment: the settings, and what they make of reader and model.
local paths = import 'paths.libsonnet';

{
  // All a variant may change.
  options_file: paths.bilm.options_file,
  weight_file: paths.bilm.weight_file,
  at: 'input',  // or 'output', 'both'
  layers: 'all',  // or 'last', or numbers; 0 is the token layer
  layer_norm: false,
  dropout: 0.5,
  lambda: 0.001,  // strength of the L2 penalty on the layer scores (section 3.2)
  trainable: false,
  dtype: 'float32',

  local elmo = self,

  indexer:: { type: 'elmo-characters', options_file: elmo.options_file },
  placement:: {
    type: 'elmo-placement',
    at: elmo.at,
    elmo: {
      options_file: elmo.options_file,
      weight_file: elmo.weight_file,
      layers: elmo.layers,
      layer_norm: elmo.layer_norm,
      dropout: elmo.dropout,
      trainable: elmo.trainable,
      dtype: elmo.dtype,
    },
  },
  regularizer:: { regexes: [['layer_scores', { type: 'l2', alpha: elmo.lambda }]] },
}
