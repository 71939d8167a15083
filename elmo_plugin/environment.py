"""
The environment variables for corpora, biLM, word vectors and cache, described in docs/data.md. An
empty value counts as not set, unless that page says otherwise.
"""

import os
from contextlib import suppress
from itertools import islice
from os import PathLike
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import cache_folder, shipped
from elmo_plugin.util.word_vectors import vector_lines

File = Union[str, PathLike]

DEFAULTS: Dict[str, str] = {
    "ELMO_DATA": "fixtures/corpora",
    "ELMO_OPTIONS": "pretrained/small/options.json",
    "ELMO_WEIGHTS": "pretrained/small/weights.safetensors",
    "ELMO_GLOVE": "fixtures/corpora/glove/vectors.100d.txt.gz",
    "ELMO_COVE": "fixtures/cove/weights.pth",
    "ELMO_WIDE": "fixtures/corpora/glove/vectors.100d.txt.gz",
}
_BILM = ("ELMO_OPTIONS", "ELMO_WEIGHTS")
# Names the whole biLM, in place of the two files.
_WHOLE_BILM = "ELMO_BILM"
# Set by `set_defaults`.
_FILLED: Dict[str, str] = {}
# Have a default only if ELMO_GLOVE has its default.
_OF_GLOVE = ("ELMO_COVE", "ELMO_WIDE")
_SEED = "13370"
# Users' own files.
_OWN = ("ELMO_TRAIN", "ELMO_DEV", "ELMO_TEST")
_WORD_VECTORS = ("ELMO_GLOVE", "ELMO_TURIAN", "ELMO_WIDE")
_MAY_BE_EMPTY = ("ELMO_GLOVE", "ELMO_TURIAN", "ELMO_CACHE")


def setting(name: str) -> str:
    """The value or default of one of our variables; a default file is an absolute path."""
    value = os.environ.get(name)
    if name in _BILM and value == _FILLED.get(name):
        # `set_defaults` set it, perhaps before the user set the other one.
        value = None
    if value or (value is not None and name in _MAY_BE_EMPTY):
        return value
    if name in _OF_GLOVE and setting("ELMO_GLOVE") != str(shipped(DEFAULTS["ELMO_GLOVE"])):
        return ""
    others = (*_BILM, _WHOLE_BILM)
    if name in _BILM and any(os.environ.get(n) not in ("", None, _FILLED.get(n)) for n in others):
        # The user set the other file, or both by ELMO_BILM: another biLM than the default.
        return ""
    if name in DEFAULTS:
        return str(shipped(DEFAULTS[name]))
    folder = cache_folder()
    cache = "" if folder is None else str(folder / "layers")
    empty = dict.fromkeys(("ELMO_TURIAN", _WHOLE_BILM, *_OWN), "")
    return {**empty, "ELMO_CACHE": cache, "ELMO_SEED": _SEED}[name]


def named_files(*given: Optional[File]) -> List[File]:
    """The files that name a biLM: those of `given` that are, or else those of the environment."""
    names = (_WHOLE_BILM,) if setting(_WHOLE_BILM) else _BILM
    return [file for file in given if file] or [setting(name) for name in names]


def chosen_bilm(
    bilm: Optional[File] = None,
    options_file: Optional[File] = None,
    weight_file: Optional[File] = None,
) -> Tuple[File, Optional[File]]:
    """
    A biLM for `find_bilm`, or its options and weights: what is given, else `ELMO_BILM`, else
    `ELMO_OPTIONS` and `ELMO_WEIGHTS`, else the defaults. Raises `ConfigurationError` for a biLM
    beside files, or for one file alone: no default fits it.
    """
    setting_name = "`bilm`"
    if not any((bilm, options_file, weight_file)):
        bilm, setting_name = setting(_WHOLE_BILM), _WHOLE_BILM
        options_file, weight_file = setting("ELMO_OPTIONS"), setting("ELMO_WEIGHTS")
    if bilm and (options_file or weight_file):
        raise ConfigurationError(
            f"Expected a biLM or its two files, found {setting_name} {bilm} and "
            f"{options_file or weight_file}. Leave one of them out."
        )
    if bilm:
        return bilm, None
    if not options_file or not weight_file:
        raise ConfigurationError(
            "Expected both files of a biLM or neither, found "
            f"{f'options {options_file}' if options_file else f'weights {weight_file}'} alone. "
            "Set `options_file` and `weight_file` (or ELMO_OPTIONS and ELMO_WEIGHTS), or `bilm` "
            "(or ELMO_BILM) if both are in one folder."
        )
    return options_file, weight_file


def set_defaults(span_columns: Callable[[str], List[int]] = lambda path: []) -> None:
    """
    Gives unset variables their defaults, and sets `NAME_DIM` and `NAME_CASED` of word vectors, and
    `ELMO_TRAIN_SPANS` to what `span_columns` finds in the file. Must run before AllenNLP evaluates
    an experiment, whose `std.extVar` needs them all.
    """
    names = (*DEFAULTS, _WHOLE_BILM, *_OWN, "ELMO_TURIAN", "ELMO_CACHE", "ELMO_SEED")
    values = {name: setting(name) for name in names}
    filled = (*_BILM, "ELMO_DATA")
    _FILLED.update({name: values[name] for name in filled if not os.environ.get(name)})
    os.environ.update(values)
    for name in _WORD_VECTORS:
        if found := width_and_case(os.environ[name]):
            os.environ[f"{name}_DIM"] = str(found[0])
            os.environ[f"{name}_CASED"] = "yes" if found[1] else ""
        for kind in ("DIM", "CASED"):
            os.environ.setdefault(f"{name}_{kind}", "")
    columns: List[int] = []
    # As for word vectors: the reader raises the error, and nothing is downloaded.
    if os.environ["ELMO_TRAIN"] and "://" not in os.environ["ELMO_TRAIN"]:
        with suppress(OSError, ValueError):
            columns = span_columns(os.environ["ELMO_TRAIN"])
    os.environ["ELMO_TRAIN_SPANS"] = " ".join(map(str, columns))


def note_on_fixtures(path: Any) -> Optional[str]:
    """What a user should know who trains on a fixture because ELMO_DATA is not set."""
    fixtures = _FILLED.get("ELMO_DATA")
    if fixtures is None or not str(path).startswith(f"{fixtures}{os.sep}"):
        return None
    return (
        "ELMO_DATA is not set, so this trains on a tiny sample that comes with elmo_plugin. Set it "
        "to the folder of your corpora."
    )


def width_and_case(path: str) -> Optional[Tuple[int, bool]]:
    """
    The width of the word vectors in a file, and whether one of the first words has capitals; `None`
    for an empty path, a URL, and a file that cannot be read: its embedder raises the error.
    """
    lines: List[str] = []
    # Importing the plugin must not download a file.
    if path and "://" not in path:
        with suppress(OSError, ValueError):
            lines = [line for _, line in islice(vector_lines(path), 1000) if " " in line]
    words = " ".join(line.split(" ")[0] for line in lines)
    return (lines[0].count(" "), words != words.lower()) if lines else None
