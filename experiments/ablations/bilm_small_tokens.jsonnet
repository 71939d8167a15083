// bilm_small.jsonnet with token embeddings, the alternative input in section 3.1: a vector for each
// word of the vocabulary, and one of <UNK> for all others. Ours: not run.
(import '../bilm_small.jsonnet') { settings+: { filters: null } }
