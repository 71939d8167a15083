"""File formats as frozen dataclasses, readable without tensors."""

from elmo_plugin.corpora import (
    columns,
    conll2003,
    conll2012,
    files,
    json_lines,
    penn_treebank,
    sentence_per_line,
    snli,
    squad,
    sst,
)

__all__ = [
    "columns",
    "conll2003",
    "conll2012",
    "files",
    "json_lines",
    "penn_treebank",
    "sentence_per_line",
    "snli",
    "squad",
    "sst",
]
