// The biLM that comes with the project over token embeddings, the other input that section 3.1
// names: one vector for each word that is predicted and `<UNK>` for the rest.
// Ours: not run.
(import '../bilm_small.jsonnet') { settings+: { filters: null } }
