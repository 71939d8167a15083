// ELMo at the output only: concatenated to the encoded first and last token of a span.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
