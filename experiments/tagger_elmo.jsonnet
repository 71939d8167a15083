// Any tags of words in files of your own, with ELMo at the input of tagger.jsonnet, as in
// ner_elmo.jsonnet.
// Paper: no such experiment. Ours: docs/own-tags.md.
(import 'tagger.jsonnet') { settings+: { elmo: (import 'ner_elmo.jsonnet').settings.elmo } }
