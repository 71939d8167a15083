// Settings that the trials in this folder share: the shape of bilm_small.jsonnet, and the training of
// the biLM that was shipped before these trials.
local paths = import '../lib/paths.libsonnet';

(import '../bilm_small.jsonnet') {
  settings+: {
    corpus: { train: paths.lm.large.train, heldout: paths.lm.ladder.heldout },
    batches+: { tokens_per_batch: 6144 },
    optimizer: { type: 'elmo-adam', lr: 3e-3, betas: [0.9, 0.99] },
    schedule+: { minutes: 20 },
  },

  // Muon with Adam's learning rate, so that only the optimizer differs.
  muon:: (import '../bilm_small.jsonnet').settings.optimizer { lr: 3e-3 },
}
