// ELMo at the output only: beside the encoded tokens at which a span begins and ends.
(import '../coref_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
