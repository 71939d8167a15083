// Table 1 of Peters et al. (2018): six tasks on test, without ELMo and with it.
// Baselines: fixed word vectors, trained ones, and, where the model with ELMo is regularised more
// strongly (elmo_regularisation.libsonnet), trained ones with that regularisation. ELMo is compared
// with the baseline with the best validation score. The models with ELMo have the word vectors of
// their experiments: trained ones for NER and SRL, fixed ones for the others. NER, SST and SNLI
// have a column with the other kind, too, and SNLI one with the regularisation of the baseline. The
// last column is the best of these with the medium biLM, whose files are in $ELMO_DATA/bilm/medium.
// SRL looks words up in lower case, and has a baseline that keeps their case, which our word vectors
// distinguish.
// All columns of a row have the same data, epochs and patience. Differences from the experiments:
// epochs and patience; a higher learning rate and smaller layers for SST; SNLI on a fifth of its
// data, too, and SQuAD on a quarter; training in bfloat16 where the CPU has it, except for NER and
// coreference.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local elmo_regularisation = import 'elmo_regularisation.libsonnet';
local training = import 'training.libsonnet';

local vectors(trainable) = { words: words.with_trainable(super.words, trainable) };
local medium(elmo, settings={}) = {
  name: 'ELMo, medium biLM',
  experiment: elmo,
  settings: settings { elmo+: paths.other_bilm('medium') },
};
// `trained`: the paper trains the word vectors, so its baseline is the one with trained vectors.
local columns(baseline, elmo, papers, regularisation=null, trained=false) = [
  {
    name: 'fixed vectors',
    experiment: baseline,
    settings: vectors(false),
    paper: if trained then null else papers[0],
  },
  {
    name: 'trained vectors',
    experiment: baseline,
    settings: vectors(true),
    paper: if trained then papers[0],
  },
] + (
  if regularisation == null then [] else [{
    name: 'trained, regularised as with ELMo',
    experiment: baseline,
    settings: vectors(true) + regularisation,
  }]
) + [{ name: 'ELMo', experiment: elmo, paper: papers[1] }];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Table 1: six tasks without and with ELMo',
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.test,
        num_baselines: 2,
        columns: columns(
          import '../ner.jsonnet', import '../ner_elmo.jsonnet', [90.15, 92.22], trained=true
        ) + [{
          name: 'ELMo, fixed vectors',
          experiment: import '../ner_elmo.jsonnet',
          settings: vectors(false),
        }, medium(import '../ner_elmo.jsonnet', vectors(false))],
        seeds: [1, 2, 3, 4, 5],
      } + training.long.ner,
      {
        name: 'SST',
        metric: 'accuracy',
        evaluate: paths.sst.test,
        num_baselines: 3,
        columns: columns(
          import '../sst.jsonnet',
          import '../sst_elmo.jsonnet',
          [51.4, 54.7],
          elmo_regularisation.sst
        ) + [{
          name: 'ELMo, trained vectors',
          experiment: import '../sst_elmo.jsonnet',
          settings: vectors(true),
        }, medium(import '../sst_elmo.jsonnet', vectors(true))],
        seeds: [1, 2, 3, 4, 5],
      } + training.long.sst,
      {
        name: 'SNLI',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        num_baselines: 3,
        columns: columns(
          import '../snli.jsonnet',
          import '../snli_elmo.jsonnet',
          [88.0, 88.7],
          elmo_regularisation.snli
        ) + [
          {
            name: 'ELMo, trained vectors',
            experiment: import '../snli_elmo.jsonnet',
            settings: vectors(true),
          },
          {
            name: 'ELMo, trained, regularised as the baseline',
            experiment: import '../snli_elmo.jsonnet',
            settings: vectors(true) + elmo_regularisation.without_snli,
          },
        ],
      } + training.long.snli { fractions: [0.2, 1] },
      {
        // All pairs, until the score on dev stops rising. The settings of the best columns above.
        name: 'SNLI, 20 epochs',
        metric: 'accuracy',
        evaluate: paths.snli.test,
        local elmo = import '../snli_elmo.jsonnet',
        local as_baseline = vectors(true) + elmo_regularisation.without_snli,
        columns: [
          {
            name: 'trained vectors',
            experiment: import '../snli.jsonnet',
            settings: vectors(true),
          },
          { name: 'ELMo', experiment: elmo, settings: as_baseline },
          medium(elmo, as_baseline),
        ],
        settings: { num_epochs: 20, patience: 3, mixed_precision: true },
        seeds: [1],
      },
      {
        name: 'SRL',
        metric: 'f1-measure-overall',
        evaluate: paths.srl.test,
        num_baselines: 3,
        local all = columns(
          import '../srl.jsonnet', import '../srl_elmo.jsonnet', [81.4, 84.6], trained=true
        ),
        columns: all[:2] + [{
          name: 'trained vectors, case kept',
          experiment: import '../srl.jsonnet',
          settings: { words: [words.vectors(dim=100)] },
        }, all[2], medium(import '../srl_elmo.jsonnet')],
        settings: { num_epochs: 15, patience: 3, mixed_precision: true },
        seeds: [1, 2],
      },
      {
        name: 'Coreference',
        metric: 'coref_f1',
        evaluate: paths.coref.test,
        num_baselines: 2,
        columns: columns(import '../coref.jsonnet', import '../coref_elmo.jsonnet', [67.2, 70.4])
                 + [medium(import '../coref_elmo.jsonnet')],
        settings: { num_epochs: 30, patience: 6 },
      },
      {
        // The test set is not public: our scores and the paper's are on dev, which also chooses the
        // epoch.
        name: 'SQuAD, dev',
        metric: 'f1',
        evaluate: paths.squad.dev,
        num_baselines: 2,
        columns: columns(import '../squad.jsonnet', import '../squad_elmo.jsonnet', [80.8, 85.6]),
        settings: { num_epochs: 8, patience: 2, mixed_precision: true },
        fractions: [0.25],
        seeds: [1, 2],
      },
    ],
  },
}
