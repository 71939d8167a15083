// One epoch of fine-tuning on the text of the Stanford Sentiment Treebank, as printed by
// scripts/task_text.py.
local paths = import '../lib/paths.libsonnet';
(import '../bilm_finetune.jsonnet') { settings+: { corpus: paths.lm.sst } }
