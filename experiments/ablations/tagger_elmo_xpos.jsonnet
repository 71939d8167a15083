// Penn tags of CoNLL-U files, with ELMo: the tagger that comes with the project.
(import 'tagger_xpos.jsonnet') { settings+: { elmo: (import '../tagger_elmo.jsonnet').settings.elmo } }
