import os
from typing import Iterator, Sequence, Union

from elmo_plugin.corpora.columns import Rows, read_blocks
from elmo_plugin.util.text_files import find_file

MARKERS = ("#begin", "#end")


def read_rows(path: Union[str, os.PathLike]) -> Iterator[Rows]:
    """
    Streams the sentences and markers of a file, see `read_blocks`; or of a folder: all files in it
    and its folders whose names end in `gold_conll` or `gold_conll.gz`, in the order of their paths.

    # Raises

    `ValueError`
        If a folder has no such file, or a file is malformed, has no sentences or no words.
    """
    for file in _files(path):
        for rows in read_blocks(file, MARKERS):
            if all(row[3:4] == ["[WORD]"] for row in rows.cells):
                raise ValueError(
                    f"{rows.location(0)}: expected words in column 4, found [WORD], as in the "
                    "skeletons that CoNLL-2012 distributes. Join them with the words of OntoNotes "
                    "5.0 (LDC2013T19) by skeleton2conll.sh of CoNLL-2012; read what that writes."
                )
            yield rows


def _files(path: Union[str, os.PathLike]) -> Sequence[Union[str, os.PathLike]]:
    folder = find_file(path)
    if not os.path.isdir(folder):
        return [path]
    # Links to folders are not followed: they could lead back.
    found = sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(("gold_conll", "gold_conll.gz")) and not name.startswith(".")
    )
    if not found:
        raise ValueError(
            f"{path}: expected files *gold_conll in this folder or below it, found none. Correct "
            "the path; if there are files *_gold_skel, run skeleton2conll.sh of CoNLL-2012 first."
        )
    return found
