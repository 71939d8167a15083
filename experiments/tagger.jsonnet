// Any tags of words in files of your own, without ELMo: the model of ner.jsonnet. ELMO_TRAIN,
// ELMO_DEV and ELMO_TEST name columns as in CoNLL-2003, also between commas, or CoNLL-U. Tags that
// are spans, in BIO and similar schemes, are scored by F1, plain tags by accuracy: this is seen from
// the training file. Without ELMO_DEV, a tenth of the training sentences takes the place of dev.
// Difference from ner.jsonnet: plain tags may follow each other in any sequence.
// Paper: no such experiment. Ours: docs/own-tags.md.
(import 'ner.jsonnet') {
  settings+: { type: 'elmo-tagger', corpus: (import 'lib/paths.libsonnet').own, tags: null },
}
