// One epoch of fine-tuning on the text of SST (scripts/task_text.py prints it).
local paths = import '../lib/paths.libsonnet';
(import '../bilm_finetune.jsonnet') { settings+: { corpus: paths.lm.sst } }
