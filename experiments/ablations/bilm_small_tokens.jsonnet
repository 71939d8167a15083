// bilm_small.jsonnet over token embeddings, the other input that section 3.1 names: a vector for
// each word that is predicted, and <UNK> for all others. Ours: not run.
(import '../bilm_small.jsonnet') { settings+: { filters: null } }
