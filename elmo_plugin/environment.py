"""
The environment variables that say where corpora, biLM weights, word vectors and cache are.
"""

import gzip
import os
import zipfile
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Dict, List

__all__ = ["set_defaults"]

DEFAULTS: Dict[str, str] = {
    "ELMO_DATA": "fixtures/corpora",
    "ELMO_OPTIONS": "pretrained/small/options.json",
    "ELMO_WEIGHTS": "pretrained/small/weights.hdf5",
    "ELMO_GLOVE": "fixtures/corpora/glove/vectors.100d.txt.gz",
}
# For which "empty" means something: none.
_WORD_VECTORS = ("ELMO_GLOVE", "ELMO_TURIAN")


def set_defaults() -> None:
    """
    Gives each variable that is not set the absolute path of what ships with the project, and the
    cache a place of the user's own.

    Done before AllenNLP evaluates an experiment, so `std.extVar` always resolves. A value that
    is set already stays as it is; an empty one counts as not set, but for `ELMO_GLOVE`,
    `ELMO_TURIAN` and `ELMO_CACHE`.

    - `ELMO_DATA`: the folder of the corpora; below it `squad/`, `snli/`, `srl/`, `coref/`, `ner/`,
      `sst/`, `lm/`.
    - `ELMO_OPTIONS`, `ELMO_WEIGHTS`: the two files of a biLM, paths or URLs.
    - `ELMO_GLOVE`: a file of word vectors, path or URL. Empty: word vectors are learned.
    - `ELMO_GLOVE_DIM`, `ELMO_GLOVE_CASED`: the width of these vectors, and `yes` if upper case is
      among their first words. Seen from a local file; to be set for a URL.
    - `ELMO_TURIAN`: a second file of word vectors, beside the first in coreference, as the paper
      has those of Turian et al. (2010). Empty, which is the default: none. `ELMO_TURIAN_DIM`,
      `ELMO_TURIAN_CASED`: as above.
    - `ELMO_CACHE`: the folder in which experiments keep the layers of a frozen biLM, by default
      `elmo_plugin/layers` in the user's cache folder, if there is one. Empty: layers are
      computed each time.
    - `ELMO_SEED`: the seed of a training, by default AllenNLP's, 13370.
    """
    project = Path(__file__).resolve().parent.parent
    for name, path in DEFAULTS.items():
        if name not in os.environ or (name not in _WORD_VECTORS and not os.environ[name]):
            os.environ[name] = str(project / path)
    os.environ.setdefault("ELMO_TURIAN", "")
    for name in _WORD_VECTORS:
        lines = _first_lines(os.environ[name]) if os.environ[name] else []
        if lines:
            os.environ[f"{name}_DIM"] = str(lines[0].count(" "))
            words = " ".join(line.split(" ")[0] for line in lines)
            os.environ[f"{name}_CASED"] = "yes" if words != words.lower() else ""
        for kind in ("DIM", "CASED"):
            os.environ.setdefault(f"{name}_{kind}", "")
    if not os.environ.get("ELMO_SEED"):
        os.environ["ELMO_SEED"] = "13370"
    if "ELMO_CACHE" not in os.environ:
        os.environ["ELMO_CACHE"] = _default_cache()


def _default_cache() -> str:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    # Without a home folder `~` stays; and by the XDG rules a relative path does not count.
    return str(caches / "elmo_plugin" / "layers") if caches.is_absolute() else ""


def _first_lines(path: str, number: int = 1000) -> List[str]:
    """
    The first lines of a local file of word vectors, compressed or not; none if there are none to
    be read, which is for those who want the vectors to complain of.
    """
    try:
        with _open(path) as file:
            lines = [line.decode("utf-8").rstrip() for line in islice(file, number)]
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile):
        return []
    # Some files begin with their size.
    is_header = lines[:1] and all(cell.isdigit() for cell in lines[0].split(" "))
    return [line for line in lines[1 if is_header else 0 :] if " " in line]


def _open(path: str) -> BinaryIO:
    archive, _, member = path.lstrip("(").partition(")#")
    if zipfile.is_zipfile(archive):
        return zipfile.ZipFile(archive).open(member or zipfile.ZipFile(archive).namelist()[0])
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")
