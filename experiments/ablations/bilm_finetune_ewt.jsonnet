// One epoch of fine-tuning on the English Web Treebank (scripts/task_text.py prints it).
local paths = import '../lib/paths.libsonnet';
(import '../bilm_finetune.jsonnet') { settings+: { corpus: paths.lm.ewt } }
