// Continues the training of the biLM of ELMO_OPTIONS and ELMO_WEIGHTS (default: the one that ships)
// with a new schedule. Its weights, softmax and vocabulary are in one folder, as `elmo-export`
// writes them; the state of the optimizer is not needed. Give each run another ELMO_SEED, which
// determines the order of the text.
// Differences from bilm_small.jsonnet: half the learning rate, since the weights are trained.
// Paper: no such experiment. Ours: not run.
local paths = import 'lib/paths.libsonnet';

(import 'bilm_small.jsonnet') {
  settings+: {
    initial: paths.bilm,
    vocabulary_file: paths.bilm.vocabulary_file,
    optimizer+: { lr: super.lr / 2 },
  },
}
