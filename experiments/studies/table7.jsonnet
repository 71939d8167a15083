// Table 7 of Peters et al. (2018): perplexity of the text of a task before and after one epoch of
// fine-tuning the biLM on it. scripts/task_text.py makes the texts.
local row(name, experiment, papers) = {
  name: name,
  metric: 'best_validation_perplexity',
  percent: false,
  lower_is_better: true,
  columns: [
    { name: 'before', metric: 'before_perplexity', experiment: experiment, paper: papers[0] },
    { name: 'after', experiment: experiment, paper: papers[1] },
  ],
};

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Table 7: perplexity before and after fine-tuning, on dev',
    seeds: [1],
    rows: [
      row('SNLI', import '../reported/bilm_finetune_snli.jsonnet', [72.1, 16.8]),
      row('SST', import '../reported/bilm_finetune_sst.jsonnet', [null, null]),
      row('English Web Treebank', import '../reported/bilm_finetune_ewt.jsonnet', [null, null]),
    ],
  },
}
