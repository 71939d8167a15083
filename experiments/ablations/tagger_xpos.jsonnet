// Penn tags of CoNLL-U files, without ELMo. Word vectors are fixed, as in the NER model that comes with the project.
local words = import '../lib/words.libsonnet';
(import '../tagger.jsonnet') { settings+: { tag: 'xpos', words: words.with_trainable(super.words, false), num_epochs: 8 } }
