// Whether training in bfloat16 (`mixed_precision`) costs accuracy, on test: SNLI in bfloat16, as in
// table1.jsonnet, and in float32. On a processor without instructions for bfloat16, both are the
// same. The models are the best baseline and the best model with ELMo of table1.jsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';
local training = import 'training.libsonnet';

local in_both(name, experiment, settings={}) = [
  { name: name + ', bfloat16', experiment: experiment, settings: settings },
  {
    name: name + ', float32',
    experiment: experiment,
    settings: settings { mixed_precision: false },
    against: name + ', bfloat16',
  },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Training in bfloat16 and in float32',
    rows: [
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        columns: in_both('baseline', import '../snli.jsonnet')
                 + in_both('ELMo', import '../snli_elmo.jsonnet', elmo_regularisation.without_snli),
      } + training.long.snli { settings+: { words: words.with_trainable(super.words, true) } },
    ],
  },
}
