// One epoch of fine-tuning on the text of SNLI (scripts/task_text.py; its first 20,000 sentences).
local paths = import '../lib/paths.libsonnet';
(import '../bilm_finetune.jsonnet') { settings+: { corpus: paths.lm.snli } }
