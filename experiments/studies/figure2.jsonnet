// Figure 2 of Peters et al. (2018): the softmax-normalised weights of the layers in the last epoch
// of training, a column for each layer. The models are from table1.jsonnet, with ELMo; with
// `--reuse out/table1/results.json` they are not trained again.
local table1 = import 'table1.jsonnet';

local weights(row, place) = row {
  // Of several columns with ELMo, the last one has the best score on dev.
  local elmo = row.columns[std.length(row.columns) - 1],
  name: '%s, %s' % [row.name, place],
  metric: 'training_elmo_%s_layer_0' % place,
  percent: false,
  compare: false,
  num_baselines: 1,
  columns: [
    elmo {
      name: 'layer %d' % layer,
      metric: 'training_elmo_%s_layer_%d' % [place, layer],
      paper: null,
    }
    for layer in [0, 1, 2]
  ],
};

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Figure 2: weights of the layers',
    rows: [
      weights(row, place)
      for place in ['input', 'output']
      for row in table1.settings.rows
      if place == 'input' || std.member(['SST', 'SNLI', 'SQuAD, dev'], row.name)
    ],
  },
}
