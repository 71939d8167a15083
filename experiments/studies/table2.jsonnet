// Table 2 of Peters et al. (2018): the last layer or all layers, with a strong or a weak penalty on
// the unnormalised layer weights, on dev. As in section 5.1, each is compared with the one before
// it. Models are trained on a tenth of the data, SRL's on three tenths. The first 2,000 of
// SQuAD's 10,570 questions choose its best epoch. The baseline of SNLI has trained word vectors,
// which are better in Table 1; SNLI's models with ELMo have the fixed ones and the stronger
// regularisation of their experiment, which cost them points there. Epochs, patience and share:
// training.libsonnet.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local training = import 'training.libsonnet';

local row(name, metric, corpus, baseline, elmo, papers, of_baseline={}) = {
  name: name,
  metric: metric,
  evaluate: corpus.dev,
  columns: [
    { name: 'baseline', experiment: baseline, settings: of_baseline, paper: papers[0] },
    { name: 'last layer', experiment: elmo, settings: { elmo+: { layers: 'last' } }, paper: papers[1] },
    { name: 'λ = 1', experiment: elmo, settings: { elmo+: { lambda: 1 } }, paper: papers[2], against: 'last layer' },
    { name: 'λ = 0.001', experiment: elmo, settings: { elmo+: { lambda: 0.001 } }, paper: papers[3], against: 'λ = 1' },
  ],
};

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Table 2: layers and penalty, on dev',
    rows: [
      row('SQuAD', 'f1', paths.squad, import '../squad.jsonnet', import '../squad_elmo.jsonnet', [80.8, 84.7, 85.0, 85.2])
      + training.short.squad,
      row(
        'SNLI',
        'accuracy',
        paths.snli,
        import '../snli.jsonnet',
        import '../snli_elmo.jsonnet',
        [88.1, 89.1, 89.3, 89.5],
        { words: words.with_trainable(super.words, true) }
      ) + training.short.snli,
      row('SRL', 'f1-measure-overall', paths.srl, import '../srl.jsonnet', import '../srl_elmo.jsonnet', [81.6, 84.1, 84.6, 84.8])
      + training.short.srl,
    ],
  },
}
