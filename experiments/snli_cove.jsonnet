// Textual entailment: snli.jsonnet with CoVe at the input. (snli_elmo.jsonnet has ELMo at the input
// and at the output of the encoder.)
// CoVe: the second layer of the encoder in ELMO_COVE, concatenated to its input, the fixed word
// vectors of ELMO_GLOVE. A word without a vector has zeros, as in the authors' experiments, not a
// random vector as in snli.jsonnet.
// Paper: 88.2 accuracy on SNLI dev with the last layer of CoVe in this network, against 88.1
// without (Peters et al. 2018, section 5.1). Ours: docs/results/cove.md.
local words = import 'lib/words.libsonnet';

(import 'snli.jsonnet') { settings+: { words: [words.cove()] } }
