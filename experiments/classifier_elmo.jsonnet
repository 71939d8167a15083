// Any labels of texts in files of your own, with ELMo at input and output of classifier.jsonnet, as
// in sst_elmo.jsonnet.
// Paper: no such experiment. Ours: docs/own-texts.md.
local sst = (import 'sst_elmo.jsonnet').settings;

(import 'classifier.jsonnet') { settings+: { elmo: sst.elmo, dropout: sst.dropout } }
