"""File formats as frozen dataclasses, readable without tensors."""

from elmo_plugin.corpora import columns, conll2012, files, sentence_per_line

__all__ = ["columns", "conll2012", "files", "sentence_per_line"]
