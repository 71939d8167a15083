// The changes with which the scores in ../README.md were made, for training runs of an hour at most:
// fewer epochs, part of the data, or (SST) smaller layers and a higher learning rate. They are the
// same with and without ELMo.
local first(training, dev) = {
  dataset_reader+: { max_instances: training },
  settings+: { max_validation_instances: dev },
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
