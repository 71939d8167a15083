"""Commands of `elmo`, and sub-commands of `allennlp`."""
