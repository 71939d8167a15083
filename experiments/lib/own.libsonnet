// What the tasks share that also read files of your own: raw text, and a part of the training data
// in place of a dev file.
local reader(s, defaults, is_dev) = {
  // Settings with a default value are left out, so that studies know the runs of earlier versions.
  [name]: s[name]
  for name in std.objectFields(defaults)
  if s[name] != defaults[name]
} + if s.corpus.dev != null then {} else { dev_fraction: s.dev_fraction, is_dev: is_dev };

{
  settings: {
    tokenize: 'en',  // the language of raw text
    dev_fraction: 0.1,  // the part of the training data in place of a dev file, if that is null
  },

  // The fields of an experiment with the settings `s`; `defaults` are the reader's.
  fields(s, defaults): {
    local all = defaults { tokenize: 'en' },
    dataset_reader: reader(s, all, is_dev=false),
    validation_dataset_reader: reader(s, all, is_dev=true),
    validation_data_path: if s.corpus.dev == null then s.corpus.train else s.corpus.dev,
  },
}
