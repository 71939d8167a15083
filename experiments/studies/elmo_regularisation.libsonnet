// Settings that only the models with ELMo have: those of SNLI in the paper, those of SST in AllenNLP's
// configuration. In a study, the baseline can have them, too.
local of(experiment, names) = { [name]: experiment.settings[name] for name in names };

local of_snli = ['penalties', 'attention_dropout'];

{
  snli: of(import '../snli_elmo.jsonnet', of_snli),
  // For a model with ELMo that has the regularisation of the baseline.
  without_snli: of(import '../snli.jsonnet', of_snli),
  sst: of(import '../sst_elmo.jsonnet', ['dropout']),
}
