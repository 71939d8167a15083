// The biLM in pretrained/small: bilm_small.jsonnet in two processes of one thread each.
(import '../bilm_small.jsonnet') { settings+: { processes: [-1, -1] } }
