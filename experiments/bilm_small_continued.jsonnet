// Trains the biLM of ELMO_OPTIONS and ELMO_WEIGHTS (default: the one that ships) further, with a new
// schedule: its weights, its softmax and its vocabulary, all in one folder, as `elmo-export` writes
// them. The state of the optimizer is not needed. Give each run another ELMO_SEED, by which the
// order of the text is drawn.
// Differences from bilm_small.jsonnet: half the rate, since the weights are good already.
// Paper: no such experiment. Ours: not run.
local paths = import 'lib/paths.libsonnet';

(import 'bilm_small.jsonnet') {
  settings+: {
    initial: paths.bilm,
    vocabulary_file: paths.bilm.vocabulary_file,
    optimizer+: { lr: super.lr / 2 },
  },
}
