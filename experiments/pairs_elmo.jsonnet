// Any labels of pairs of texts in files of your own, with ELMo at input and output of pairs.jsonnet,
// as in snli_elmo.jsonnet.
// Paper: no such experiment. Ours: docs/own-pairs.md.
local snli = (import 'snli_elmo.jsonnet').settings;

(import 'pairs.jsonnet') {
  settings+: {
    elmo: snli.elmo,
    penalties: snli.penalties,
    attention_dropout: snli.attention_dropout,
  },
}
