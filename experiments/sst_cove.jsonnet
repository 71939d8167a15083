// Sentiment: sst.jsonnet with CoVe at the input, the network of McCann et al. (2017) with the ReLU
// layers of Peters et al. (2018). (sst_elmo.jsonnet has ELMo at the input and at the output.)
// CoVe and word vectors: as in snli_cove.jsonnet.
// Paper: 53.7 accuracy on SST-5 test (McCann et al. 2017, with character n-gram vectors and maxout
// layers; cited by Peters et al. 2018). Ours: docs/results/cove.md.
local words = import 'lib/words.libsonnet';

(import 'sst.jsonnet') { settings+: { words: [words.cove()] } }
