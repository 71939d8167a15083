// ELMo at the output only: after the integrator.
(import '../sst_elmo.jsonnet') { settings+: { elmo+: { at: 'output' } } }
