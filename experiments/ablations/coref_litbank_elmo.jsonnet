// Coreference in novels, with ELMo: LitBank (Bamman et al. 2020); not in the paper.
local paths = import '../lib/paths.libsonnet';
(import '../coref_elmo.jsonnet') { settings+: { corpus: paths.coref_litbank } }
