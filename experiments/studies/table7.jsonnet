// Table 7 of Peters et al. (2018): perplexity of the text of a task before and after one epoch of
// fine-tuning the biLM on it, and dev scores of the task with the biLM before and after, frozen in
// both cases. scripts/task_text.py writes the texts; pretrained/small/README.md has the commands,
// which use the first 20,000 sentences of SNLI. NER has fixed word vectors, as in figure1.jsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local training = import 'training.libsonnet';

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
      perplexity('SNLI', import '../ablations/bilm_finetune_snli.jsonnet', [72.1, 16.8]),
      perplexity('SST', import '../ablations/bilm_finetune_sst.jsonnet', [null, null]),
      perplexity('NER', import '../ablations/bilm_finetune_ewt.jsonnet', [null, null]),
      task('SNLI', 'accuracy', paths.snli, import '../snli_elmo.jsonnet', 'snli', [88.9, 89.5])
      + training.short.snli,
      task('SST', 'accuracy', paths.sst, import '../sst_elmo.jsonnet', 'sst', [null, null])
      + training.long.sst,
      task('NER', 'f1-measure-overall', paths.ner, import '../ner_elmo.jsonnet', 'ewt', [null, null])
      + training.long.ner { settings+: { words: words.with_trainable(super.words, false) } },
    ],
  },
}
