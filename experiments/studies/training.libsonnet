// Epochs, patience and share of the training data of rows that several studies have, so that they can
// share their runs.
{
  // As in Table 1.
  long: {
    ner: { settings: { num_epochs: 25, patience: 5 } },
    // The paper's rate and widths need tens of epochs.
    sst: {
      settings: {
        num_epochs: 10,
        patience: 3,
        learning_rate: 1e-3,
        hidden_size: 100,
        mixed_precision: true,
      },
    },
    snli: {
      fractions: [0.2],
      settings: { num_epochs: 10, patience: 3, mixed_precision: true },
    },
  },
  // As in Tables 2 and 3.
  short: {
    squad: {
      fractions: [0.1],
      settings: {
        num_epochs: 10,
        patience: 3,
        mixed_precision: true,
        max_validation_instances: 2000,
      },
    },
    snli: { fractions: [0.1], settings: { num_epochs: 8, patience: 3 } },
    // On a tenth of the data, the baseline stops before it has learned to predict roles.
    srl: {
      fractions: [0.3],
      settings: { num_epochs: 10, patience: 3, mixed_precision: true },
    },
  },
}
