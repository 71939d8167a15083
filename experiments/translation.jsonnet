// English to German, which trains an encoder for CoVe on Multi30k: CoVe-S of McCann et al. (2017).
// Paper: no BLEU is reported for CoVe-S.
local paths = import 'lib/paths.libsonnet';
local words = import 'lib/words.libsonnet';

(import 'lib/translation.libsonnet') {
  settings+: { corpus: paths.mt, words: [words.fixed_vectors(dim=300)] },
}
