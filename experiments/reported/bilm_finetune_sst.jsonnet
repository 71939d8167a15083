// One epoch of fine-tuning on text of the Stanford Sentiment Treebank, as scripts/task_text.py prints it.
local paths = import '../lib/paths.libsonnet';
(import '../bilm_finetune.jsonnet') { settings+: { corpus: paths.lm.sst } }
