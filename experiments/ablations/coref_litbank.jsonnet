// Coreference in novels, without ELMo: LitBank (Bamman et al. 2020); not in the paper.
local paths = import '../lib/paths.libsonnet';
(import '../coref.jsonnet') { settings+: { corpus: paths.coref_litbank } }
