// One epoch on the text of a task, from the biLM of ELMO_OPTIONS and ELMO_WEIGHTS (section 3.4 and
// Table 7). Text is tokenised, one sentence a line: `settings.corpus`. Words are those that the
// biLM was trained to predict, in `vocabulary.txt` beside its weights (elsewhere:
// `settings.vocabulary_file` and `settings.initial.vocabulary_file`), with its softmax: in the weight
// file, or in `softmax.hdf5` beside it. To go on from an archive, write these files with `allennlp
// elmo-export` first.
// metrics_before.json and metrics.json hold the perplexities before and after; the log has both.
// Differs: bilm-tf goes on with Adagrad at 0.2, its accumulators and its streams. Weight files
// hold no accumulators, so this is Adam with a rate that falls to zero over the epoch, and each
// sentence is read by itself, as ELMo will read it.
// Paper: 72.1 -> 16.8 on SNLI (appendix, Table 7). Ours: pretrained/small/README.md.
local paths = import 'lib/paths.libsonnet';

(import 'lib/bilm.libsonnet') {
  settings+: {
    corpus: paths.lm.small,
    initial: paths.bilm,
    vocabulary_file: paths.bilm.vocabulary_file,
    num_words: null,
    num_samples: 1024,
    dropout: 0.1,
    batches: { order: 'sentences', tokens_per_batch: 2048 },
    optimizer: { type: 'elmo-adam', lr: 1e-3 },
    schedule: { type: 'linear_with_warmup', warmup_steps: 0 },
    grad_norm: 1.0,
    num_epochs: 1,
  },
}
