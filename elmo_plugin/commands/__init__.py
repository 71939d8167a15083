"""Sub-commands of `allennlp`."""
