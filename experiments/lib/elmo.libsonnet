// ELMo in an experiment: the settings, and what they make of reader and model.
local paths = import 'paths.libsonnet';

// All a variant may change; what each means: python -c 'from elmo_plugin import Elmo; help(Elmo)'
local defaults = {
  options_file: paths.bilm.options_file,
  weight_file: paths.bilm.weight_file,
  at: 'input',  // or 'output', 'both'
  layers: 'all',  // or 'last', or numbers; 0 is the token layer
  layer_norm: false,
  fixed_weights: null,
  dropout: 0.5,
  lambda: 0.001,  // strength of the L2 penalty on the layer scores (section 3.2)
  trainable: false,
  // Each sentence starts from a zero state; the authors' programs carry the state over from batch to
  // batch (`stateful`). Which is better with the published weights has not been measured.
  stateful: false,
  warm_up: false,
  dtype: 'float32',
  // Keep layers on disk, in ELMO_CACHE, so that the biLM reads each sentence once; or a folder.
  cache: !(self.trainable || self.stateful),
};

defaults {
  local elmo = self,
  local unknown = std.setDiff(std.objectFields(elmo), std.objectFields(defaults)),
  assert unknown == [] : 'elmo: no such settings: ' + std.join(', ', unknown),

  indexer:: { type: 'elmo-characters', options_file: elmo.options_file },
  placement:: {
    type: 'elmo-placement',
    at: elmo.at,
    elmo: {
      [name]: elmo[name]
      for name in std.objectFields(defaults)
      if name != 'at' && name != 'lambda'
    },
  },
  data_loader:: { type: 'elmo-prefetch' },
  regularizer:: { regexes: [['layer_scores', { type: 'l2', alpha: elmo.lambda }]] },
}
