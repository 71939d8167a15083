// ELMo in an experiment: its settings, and the parts of reader and model derived from them.
local paths = import 'paths.libsonnet';
local check = import 'settings.libsonnet';

// The settings that a variant may change. Their meaning:
// python -c 'from elmo_plugin import Elmo; help(Elmo)'
local defaults = {
  bilm: paths.bilm_name,  // whatever `load_bilm` opens, in place of the two files
  options_file: if self.bilm == null then paths.bilm.options_file,
  weight_file: if self.bilm == null then paths.bilm.weight_file,
  at: 'input',  // or 'output', 'both'
  layers: 'all',  // or 'last', or a list of layers such as [0, 1]; 0 is the token layer
  layer_norm: false,
  fixed_weights: null,
  dropout: 0.5,
  lambda: 0.001,  // strength of the L2 penalty on the unnormalised layer weights (section 3.2)
  trainable: false,
  // By default each sentence starts from a zero state. The authors' programs carry the state from
  // batch to batch (true). Which is better with the published weights has not been measured.
  stateful: false,
  warm_up: false,
  dtype: 'float32',
  // True: cache layers in the folder ELMO_CACHE, so that the biLM processes each sentence only
  // once. A path: cache them in that folder.
  cache: self.trainable == false && self.stateful == false,
};

defaults {
  local elmo = self,

  local files = if elmo.bilm == null then ['options_file', 'weight_file'] else ['bilm'],
  indexer:: { type: 'elmo-characters', [files[0]]: elmo[files[0]] },
  placement:: {
    type: 'elmo-placement',
    at: elmo.at,
    elmo: { [name]: elmo[name] for name in files } + {
      [name]: elmo[name]
      for name in std.objectFields(defaults)
      if !std.member(['at', 'lambda', 'bilm', 'options_file', 'weight_file'], name)
    },
  },
  data_loader:: assert check('elmo', elmo, defaults); { type: 'elmo-prefetch' },
  regularizer:: {
    // Fixed weights are no parameters.
    regexes: if elmo.fixed_weights != null then []
    else [['layer_scores', { type: 'l2', alpha: elmo.lambda }]],
  },
}
