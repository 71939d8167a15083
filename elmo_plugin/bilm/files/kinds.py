"""The kinds of folders in which biLMs are stored and published, each an entry of `KINDS`."""

import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Callable, Dict, NamedTuple, Optional, Tuple, Union

import torch

from elmo_plugin.bilm.files.arrays import CHECKPOINT_SUFFIX
from elmo_plugin.bilm.files.layout import WEIGHT_FILE, read_weights
from elmo_plugin.bilm.files.many_langs import find_many_langs, is_many_langs
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILES
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.bilm.options import OPTIONS_FILE, BilmOptions
from elmo_plugin.util.errors import ConfigurationError, excerpt
from elmo_plugin.util.weights import find_weights

CONFIG_FILE = "config.json"
SAFETENSORS_FILE = "model.safetensors"
#: The usual names of weights beside an `options.json`; the last is that of NLPL's repository.
WEIGHT_FILES = (WEIGHT_FILE, "weights.safetensors", "model.hdf5")
# The names of AllenNLP's list end like this.
_OPTIONS, _WEIGHTS = "_options.json", "_weights"
_SUFFIXES = (".hdf5", ".safetensors")


@dataclass(frozen=True)
class FoundBilm:
    """A biLM in files: its options, which have been read and checked, and how to read the rest."""

    options: BilmOptions
    #: Reads the state dict of a `Bilm` without its options. All numbers are finite.
    read: Callable[[], Dict[str, torch.Tensor]]
    #: Its name in messages.
    source: str
    #: Where `find_softmax` looks for the softmax; `None` if there is none.
    weight_file: Optional[Union[str, PathLike]] = None


class Kind(NamedTuple):
    """Files that hold a biLM together."""

    #: Their names, for messages.
    expected: str
    #: Reads the options in a folder; `None` if such files are not there.
    find: Callable[[Path], Optional[FoundBilm]]


def find_in_folder(folder: Path) -> FoundBilm:
    """
    The biLM in a folder, which may also be in its only sub-folder, as in some zip files. Raises
    `ConfigurationError` with what was looked for and what is there if there is none.
    """
    names = sorted(name for name in os.listdir(folder) if not name.startswith((".", "__")))
    inner = [folder / names[0]] if len(names) == 1 and (folder / names[0]).is_dir() else []
    for place in (folder, *inner):
        for kind in KINDS:
            if (found := kind.find(place)) is not None:
                return found
    expected = ", or ".join(kind.expected for kind in KINDS)
    there = excerpt(", ".join(names)) or "an empty folder"
    advice = ""
    if any(name.endswith(CHECKPOINT_SUFFIX) for name in names):
        advice = " `elmo import` reads checkpoints of bilm-tf."
    raise ConfigurationError(
        f"{folder} holds no biLM: expected {expected} in it, found {there}.{advice}"
    )


def of_options_file(options_file: Path) -> FoundBilm:
    """The biLM of an options file whose weights are beside it. Else a `ConfigurationError`."""
    weights = weights_beside(options_file)
    if weights is None:
        raise ConfigurationError(
            f"{options_file} comes without weights: expected {', '.join(WEIGHT_FILES)}, or "
            "exactly one other *.hdf5 or *.safetensors beside it, found "
            f"{', '.join(_weight_files(options_file.parent)) or 'none'}. Put the weights there, or "
            "name them as `weight_file`."
        )
    options = BilmOptions.from_file(options_file)
    return FoundBilm(options, lambda: read_weights(options, weights), str(options_file), weights)


def weights_names(options_name: str) -> Tuple[str, ...]:
    """The usual names of the weights that belong to an options file, the first one first."""
    if options_name == CONFIG_FILE:
        return (SAFETENSORS_FILE,)
    if options_name.endswith(_OPTIONS):
        return (f"{options_name.removesuffix(_OPTIONS)}{_WEIGHTS}.hdf5",)
    return WEIGHT_FILES


def weights_beside(options_file: Path) -> Optional[Path]:
    """The weights in the folder of an options file, by their usual names or as the only ones."""
    folder, name = options_file.parent, options_file.name
    prefix = name.removesuffix("options.json") if name.endswith(_OPTIONS) else ""
    only = _weight_files(folder, prefix) if name != CONFIG_FILE else ()
    names = (*weights_names(name), *(only if len(only) == 1 else ()))
    return next((folder / each for each in names if (folder / each).is_file()), None)


def _weight_files(folder: Path, prefix: str = "") -> Tuple[str, ...]:
    names = sorted(os.listdir(folder))
    return tuple(
        name
        for name in names
        if name.endswith(_SUFFIXES) and name.startswith(prefix) and name not in SOFTMAX_FILES
    )


def _find_pair(folder: Path) -> Optional[FoundBilm]:
    """Of an options file whose weights are there, too. Other programs have `config.json`."""
    pairs = sorted(folder.glob(f"*{_OPTIONS}"))
    files = [folder / CONFIG_FILE, folder / OPTIONS_FILE, *(pairs if len(pairs) == 1 else ())]
    complete = (file for file in files if file.is_file() and weights_beside(file))
    options_file = next(complete, None)
    return None if options_file is None else of_options_file(options_file)


def _find_trained(folder: Path) -> Optional[FoundBilm]:
    if find_weights(folder) is None:
        return None
    model = TrainedModel.read(folder)
    options = model.only_options()
    return FoundBilm(options, lambda: model.parameters_of(options), str(folder), folder)


def _find_many_langs(folder: Path) -> Optional[FoundBilm]:
    if not is_many_langs(folder):
        return None
    return FoundBilm(*find_many_langs(folder), str(folder))


#: Tried in this order.
KINDS = (
    Kind(
        f"{CONFIG_FILE} and {SAFETENSORS_FILE}, or {OPTIONS_FILE} and {WEIGHT_FILE} (or "
        f"{' or '.join(WEIGHT_FILES[1:])}, or exactly one other *.hdf5), or one pair *{_OPTIONS} "
        f"and *{_WEIGHTS}.hdf5",
        _find_pair,
    ),
    Kind("weights.th or best.th of a trained model that contains a biLM", _find_trained),
    Kind("config.json, token_embedder.pkl and encoder.pkl of ELMoForManyLangs", _find_many_langs),
)
