// Figure 2 of Peters et al. (2018): the softmax-normalised weights of the layers after training, a
// column for each layer.
local row(name, experiment, place, settings) = {
  name: '%s, %s' % [name, place],
  metric: 'training_elmo_%s_layer_0' % place,
  percent: false,
  compare: false,
  settings: settings,
  columns: [
    {
      name: 'layer %d' % layer,
      experiment: experiment,
      metric: 'training_elmo_%s_layer_%d' % [place, layer],
    }
    for layer in [0, 1, 2]
  ],
};

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Figure 2: weights of the layers',
    fractions: [0.1],
    rows: [
      row('NER', import '../ner_elmo.jsonnet', 'input', { num_epochs: 10 }),
      row('SRL', import '../srl_elmo.jsonnet', 'input', { num_epochs: 10, mixed_precision: true }),
      row('Coreference', import '../coref_elmo.jsonnet', 'input', { num_epochs: 15 })
      { fractions: [1] },
      row('SNLI', import '../snli_elmo.jsonnet', 'input', { num_epochs: 8 }),
      row('SNLI', import '../snli_elmo.jsonnet', 'output', { num_epochs: 8 }),
      row('SST', import '../sst_elmo.jsonnet', 'input', { num_epochs: 8, learning_rate: 1e-3, hidden_size: 100 }),
      row('SST', import '../sst_elmo.jsonnet', 'output', { num_epochs: 8, learning_rate: 1e-3, hidden_size: 100 }),
      row('SQuAD', import '../squad_elmo.jsonnet', 'input', { num_epochs: 6 }),
      row('SQuAD', import '../squad_elmo.jsonnet', 'output', { num_epochs: 6 }),
    ],
  },
}
