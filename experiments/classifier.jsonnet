// Any labels of texts in files of your own, without ELMo: the model of sst.jsonnet. ELMO_TRAIN,
// ELMO_DEV and ELMO_TEST name .csv, .tsv or .jsonl, whose columns are `settings.text` and
// `settings.label`, or trees as of SST. Without ELMO_DEV, a tenth of the training data takes the
// place of dev.
// Paper: no such experiment. Ours: docs/own-texts.md.
(import 'sst.jsonnet') {
  settings+: { type: 'elmo-classifier', corpus: (import 'lib/paths.libsonnet').own },
}
