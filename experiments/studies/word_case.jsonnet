// Words that the file of word vectors lacks: a vector of their own, or that of their lower or title
// case. NER on test, as in table1.jsonnet, with which it shares the runs without the fallback. The
// scores on dev decide.
local paths = import '../lib/paths.libsonnet';
local words = import '../lib/words.libsonnet';
local training = import 'training.libsonnet';

local fallback = { words: words.with_case_fallback(super.words) };
local pair(name, experiment) = [
  { name: name, experiment: experiment },
  { name: name + ', case fallback', experiment: experiment, settings: fallback, against: name },
];

(import '../lib/study.libsonnet') {
  settings+: {
    title: 'Word vectors of another case',
    rows: [
      {
        name: 'NER',
        metric: 'f1-measure-overall',
        evaluate: paths.ner.test,
        columns: pair('fixed vectors', import '../ner.jsonnet')
                 + pair('ELMo, fixed vectors', import '../ner_elmo.jsonnet'),
      } + training.long.ner { settings+: { words: words.with_trainable(super.words, false) } },
    ],
  },
}
