// Settings that only the models with ELMo have: those of SNLI in the paper, those of SST in AllenNLP's
// configuration. In a study, the baseline can have them, too.
local of(experiment, names) = { [name]: experiment.settings[name] for name in names };

{
  snli: of(import '../snli_elmo.jsonnet', ['penalties', 'attention_dropout']),
  sst: of(import '../sst_elmo.jsonnet', ['dropout']),
}
