// ELMo at the output only: concatenated to the encoded tokens, so to the first and the last one
// of a span and to the input of the head attention.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
