// Table 7 of Peters et al. (2018): perplexity of the text of a task before and after one epoch of
// fine-tuning the biLM on it (scripts/task_text.py makes the texts), and, on dev, what a task gains
// from the fine-tuned biLM, which stays frozen (docs/studies.md puts it in its place).
local paths = import '../lib/paths.libsonnet';

local perplexity(name, experiment, papers) = {
  name: name + ', perplexity',
  metric: 'best_validation_perplexity',
  percent: false,
  lower_is_better: true,
  compare: false,
  columns: [
    { name: 'before', metric: 'before_perplexity', experiment: experiment, paper: papers[0] },
    { name: 'after', experiment: experiment, paper: papers[1] },
  ],
  seeds: [1],
};

local task(name, metric, corpus, elmo, bilm, papers) = {
  name: name,
  metric: metric,
  evaluate: corpus.dev,
  columns: [
    { name: 'before', experiment: elmo, paper: papers[0] },
    {
      name: 'after',
      experiment: elmo,
      settings: { elmo+: paths.other_bilm(bilm) },
      paper: papers[1],
    },
  ],
};

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Table 7: before and after fine-tuning the biLM, on dev',
    rows: [
      perplexity('SNLI', import '../reported/bilm_finetune_snli.jsonnet', [72.1, 16.8]),
      perplexity('SST', import '../reported/bilm_finetune_sst.jsonnet', [null, null]),
      perplexity('NER', import '../reported/bilm_finetune_ewt.jsonnet', [null, null]),
      task('SNLI', 'accuracy', paths.snli, import '../snli_elmo.jsonnet', 'snli', [88.9, 89.5])
      { fractions: [0.2], settings: { num_epochs: 8, patience: 3 } },
      task('SST', 'accuracy', paths.sst, import '../sst_elmo.jsonnet', 'sst', [null, null])
      { settings: { num_epochs: 6, patience: 3, learning_rate: 1e-3, hidden_size: 100 } },
      task('NER', 'f1-measure-overall', paths.ner, import '../ner_elmo.jsonnet', 'ewt', [null, null])
      { settings: { num_epochs: 15, patience: 4 } },
    ],
  },
}
