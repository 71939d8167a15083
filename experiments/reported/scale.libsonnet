// The scale of the scores in ../README.md, each made in an hour or less: fewer epochs, smaller
// layers, or a part of the data. Everything else is as in the experiment, and the same with and
// without ELMo.
local first(training, dev) = {
  dataset_reader+: { max_instances: training },
  validation_dataset_reader+: { max_instances: dev },
};

{
  ner: { settings+: { num_epochs: 6 } },
  // The paper's rate of 1e-4 and widths of 300 need tens of epochs.
  sst: { settings+: { num_epochs: 2, learning_rate: 1e-3, hidden_size: 100 } },
  snli: first(12000, 3000) { settings+: { num_epochs: 3 } },
  srl: { settings+: { num_epochs: 2 } },
  squad: first(30000, 2000) { settings+: { num_epochs: 4 } },
  coref: { settings+: { num_epochs: 15 } },
  coref_litbank: { settings+: { num_epochs: 5 } },
}
