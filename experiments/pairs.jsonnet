// Any labels of pairs of texts in files of your own, without ELMo: the model of snli.jsonnet.
// ELMO_TRAIN, ELMO_DEV and ELMO_TEST name .csv, .tsv or .jsonl, whose columns are
// `settings.premise`, `settings.hypothesis` and `settings.label`. Without ELMO_DEV, a tenth of the
// training data takes the place of dev.
// Paper: no such experiment. Ours: docs/own-pairs.md.
(import 'snli.jsonnet') {
  settings+: { type: 'elmo-pairs', corpus: (import 'lib/paths.libsonnet').own },
}
