// One epoch of fine-tuning on the text of SNLI, as printed by scripts/task_text.py. The run of
// pretrained/small/README.md has its first 20,000 sentences.
local paths = import '../lib/paths.libsonnet';
(import '../bilm_finetune.jsonnet') { settings+: { corpus: paths.lm.snli } }
