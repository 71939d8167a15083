// Settings that the authors use only with ELMo. In a study, the baseline has them, too.
local of(experiment, names) = { [name]: experiment.settings[name] for name in names };

{
  snli: of(import '../snli_elmo.jsonnet', ['penalties', 'attention_dropout']),
  sst: of(import '../sst_elmo.jsonnet', ['dropout']),
}
