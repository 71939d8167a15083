// Chunks (CoNLL-2000) without ELMo: the model of ner.jsonnet, as Peters et al. (2017) used one model
// for both tasks. Their chunks are in the last column; for those of CoNLL-2003 set `tag_column: 3`.
// Differences: those of ner.jsonnet, whose model is that of the paper of 2018.
// Paper: no score without a language model in Peters et al. (2018). Ours: not run, for want of the
// corpus.
(import 'ner.jsonnet') { settings+: { corpus: (import 'lib/paths.libsonnet').chunking } }
