// No penalty on the unnormalised layer weights.
(import '../snli_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
