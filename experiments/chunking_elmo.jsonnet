// Chunks (CoNLL-2000) with ELMo at the input, as in ner_elmo.jsonnet.
// Paper: 96.37 F1 on CoNLL-2000 test with TagLM (Peters et al. 2017), which is
// ablations/chunking_elmo_taglm.jsonnet. Ours: not run, because the corpus was not available.
(import 'ner_elmo.jsonnet') { settings+: { corpus: (import 'lib/paths.libsonnet').chunking } }
