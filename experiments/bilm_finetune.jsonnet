// Fine-tunes the biLM of ELMO_OPTIONS and ELMO_WEIGHTS for one epoch on the text of a task (section
// 3.4 and Table 7). `settings.corpus` is tokenised text, one sentence per line. The vocabulary is
// from the biLM's training: `vocabulary.txt` in the folder of its weights, or another file in
// `settings.vocabulary_file` and `settings.initial.vocabulary_file`. Its softmax is in the weight
// file or in `softmax.hdf5` beside it. To fine-tune an archive, export these files from it first,
// with `allennlp elmo-export`.
// metrics_before.json and metrics.json have the perplexities before and after fine-tuning.
// Differences: bilm-tf continues with Adagrad at 0.2, its accumulators and its text streams. Weight
// files contain no accumulators, so we use Adam with a learning rate that decays to zero over the
// epoch, gradient norm 1, batches of 2,048 tokens and 1,024 samples; each sentence is processed
// separately from a zero state, as in the task models.
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
