"""
The environment variables that say where corpora, biLM weights and word vectors are.
"""

import os
from pathlib import Path
from typing import Dict

__all__ = ["set_defaults"]

DEFAULTS: Dict[str, str] = {
    "ELMO_DATA": "fixtures/corpora",
    "ELMO_OPTIONS": "pretrained/small/options.json",
    "ELMO_WEIGHTS": "pretrained/small/weights.hdf5",
    "ELMO_GLOVE": "fixtures/corpora/glove/vectors.100d.txt.gz",
}


def set_defaults() -> None:
    """
    Gives each variable that is not set the absolute path of what ships with the project.

    Done before AllenNLP evaluates an experiment, so `std.extVar` always resolves. A value that
    is set already stays as it is; an empty one counts as not set, but for `ELMO_GLOVE`.

    - `ELMO_DATA`: the folder of the corpora; below it `squad/`, `snli/`, `srl/`, `coref/`, `ner/`,
      `sst/`, `lm/`.
    - `ELMO_OPTIONS`, `ELMO_WEIGHTS`: the two files of a biLM, paths or URLs.
    - `ELMO_GLOVE`: a file of word vectors, path or URL. Empty: word vectors are learned.
    """
    project = Path(__file__).resolve().parent.parent
    for name, path in DEFAULTS.items():
        # Only for word vectors does "empty" mean something.
        if name not in os.environ or (name != "ELMO_GLOVE" and not os.environ[name]):
            os.environ[name] = str(project / path)
