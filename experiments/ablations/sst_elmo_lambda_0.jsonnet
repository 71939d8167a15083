// No penalty on the unnormalised layer weights.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { lambda: 0 } } }
