"""The files of a corpus in the columns of the CoNLL-2012 shared task."""

import os
from glob import escape, glob
from typing import Iterator, Sequence, Union

from elmo_plugin.corpora.columns import Rows, read_blocks
from elmo_plugin.util.text_files import find_file

MARKERS = ("#begin", "#end")
# What stands for every word in the files that the shared task distributes.
_NO_WORD = ["[WORD]"]


def read_rows(path: Union[str, os.PathLike]) -> Iterator[Rows]:
    """
    Streams the sentences and the markers of a corpus, see `read_blocks`.

    # Parameters

    path : `Union[str, os.PathLike]`
        A file, or a folder: then all files in it and its folders whose names end in `gold_conll`
        (or `gold_conll.gz`), in the order of their paths.

    # Raises

    `ValueError`
        If a file is malformed or a skeleton without words, with the line, or holds no sentences; if
        a folder holds no such file.
    """
    for file in _files(path):
        for rows in read_blocks(file, MARKERS):
            if all(row[3:4] == _NO_WORD for row in rows.cells):
                raise ValueError(
                    f"{rows.location(0)}: expected words in column 4, found [WORD], as in the "
                    "skeletons of OntoNotes that CoNLL-2012 distributes. Join them with the words "
                    "of OntoNotes 5.0 (LDC2013T19) by its script skeleton2conll.sh, and read the "
                    "files *_gold_conll that it writes."
                )
            yield rows


def _files(path: Union[str, os.PathLike]) -> Sequence[Union[str, os.PathLike]]:
    folder = find_file(path)
    if not os.path.isdir(folder):
        return [path]
    files = filter(os.path.isfile, glob(f"{escape(folder)}/**", recursive=True))
    found = sorted(file for file in files if file.endswith(("gold_conll", "gold_conll.gz")))
    if not found:
        raise ValueError(
            f"{path}: expected files whose names end in gold_conll in this folder or below it, "
            "found none. Name another folder or a file. If it has files *_gold_skel, run "
            "skeleton2conll.sh of CoNLL-2012 first."
        )
    return found
