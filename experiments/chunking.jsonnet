// Chunks (CoNLL-2000) without ELMo: the model of ner.jsonnet, as Peters et al. (2017) used one
// model for both tasks. The chunk tags of CoNLL-2000 are in the last column; in
// CoNLL-2003, set `tag_column: 3`. Difference: the model is from Peters et al. (2018), see
// ner.jsonnet.
// Paper: no chunking in Peters et al. (2018). Ours: not run, because the corpus was not available.
(import 'ner.jsonnet') { settings+: { corpus: (import 'lib/paths.libsonnet').chunking } }
