// Coreference in novels, without ELMo: LitBank (Bamman et al. 2020), which the paper does not have.
local paths = import '../lib/paths.libsonnet';
(import '../coref.jsonnet') { settings+: { corpus: paths.coref_litbank } }
