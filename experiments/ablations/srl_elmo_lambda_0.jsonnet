// No penalty on the unnormalised layer weights.
(import '../srl_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
