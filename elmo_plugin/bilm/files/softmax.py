"""The softmax of a language model in files, with bilm-tf's names and a `vocabulary.txt`."""

import os
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import List, Optional, Sequence, Union

import torch

from elmo_plugin.bilm.files.arrays import read_arrays, write_arrays
from elmo_plugin.bilm.files.trained import TrainedModel, is_archive
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.vocabulary_file import (
    VOCABULARY_FILE,
    check_specials,
    read_vocabulary,
    write_vocabulary,
)
from elmo_plugin.util.errors import ConfigurationError

SOFTMAX_FILE = "softmax.hdf5"
#: The first that is there is read.
SOFTMAX_FILES = (SOFTMAX_FILE, "softmax.safetensors")

_WEIGHT, _BIAS = "softmax/W", "softmax/b"
_TENSORS = frozenset((_WEIGHT, _BIAS))


@dataclass(frozen=True)
class SoftmaxWeights:
    """The output layer of a language model and the words it predicts."""

    #: Shape `(num_words, dim)`, `dim` being the width of the output of one direction.
    weight: torch.Tensor
    #: Shape `(num_words,)`.
    bias: torch.Tensor
    #: One per row, the first three being `<S>`, `</S>` and `<UNK>`.
    words: List[str]
    #: The count of each word in the training text, if known.
    counts: Optional[List[int]] = None

    def check_fit(self, options: BilmOptions, location: str) -> None:
        """Raises `ConfigurationError` if the number of words or the width of the biLM differs."""
        shape = (len(self.words), options.lstm.output_dim)
        found = tuple(self.weight.shape), tuple(self.bias.shape)
        if found != (shape, shape[:1]):
            raise ConfigurationError(
                f"{location} does not fit its options and vocabulary: expected a weight of shape "
                f"{shape}, the number of words and the width of the output of one direction, and a "
                f"bias of shape {shape[:1]}, found {found[0]} and {found[1]}."
            )


def find_softmax(
    weight_file: Union[str, PathLike],
    options: BilmOptions,
    vocabulary_file: Optional[Union[str, PathLike]] = None,
) -> Optional[SoftmaxWeights]:
    """
    Finds the softmax of a language model in its weight file or trained model, or in `softmax.hdf5`
    or `softmax.safetensors` beside it. `weight_file` may be any of these. Returns `None` if there
    is no softmax.

    The words of a softmax in a file are in `vocabulary_file`, by default the `vocabulary.txt`
    beside it. Raises `FileNotFoundError` if there is no `weight_file`, and `ConfigurationError` if
    a file is damaged or does not fit the options or the other file.
    """
    if is_archive(weight_file):
        softmax = softmax_of(TrainedModel.read(weight_file))
    else:
        arrays = read_arrays(weight_file, _TENSORS.intersection)
        if not arrays:
            folder = os.path.dirname(weight_file)
            for weight_file in (os.path.join(folder, name) for name in SOFTMAX_FILES):
                with suppress(FileNotFoundError):
                    arrays = read_arrays(weight_file, _TENSORS.intersection)
                    break
            else:
                return None
        if len(arrays) < len(_TENSORS):
            raise ConfigurationError(
                f"{weight_file}: expected the tensors {_WEIGHT} and {_BIAS}, found "
                f"{', '.join(arrays) or 'none'}. `elmo export` writes such a file from the archive "
                "of a language model."
            )
        if vocabulary_file is None:
            vocabulary_file = os.path.join(os.path.dirname(weight_file), VOCABULARY_FILE)
        words, counts = zip(*read_vocabulary(vocabulary_file))
        weight, bias = (torch.from_numpy(arrays[name]) for name in (_WEIGHT, _BIAS))
        known = None if None in counts else list(counts)
        softmax = SoftmaxWeights(weight, bias, list(words), known)
    if softmax is not None:
        softmax.check_fit(options, str(weight_file))
    return softmax


def softmax_of(model: TrainedModel) -> Optional[SoftmaxWeights]:
    """The softmax of a trained model, or `None`. Words must begin with `<S>`, `</S>`, `<UNK>`."""
    names = ("softmax.weight", "softmax.bias")
    if model.words is None or not all(name in model.parameters for name in names):
        return None
    check_specials(model.words, model.location)
    weight, bias = (model.parameters[name] for name in names)
    return SoftmaxWeights(weight, bias, model.words, model.counts)


def save_softmax(
    softmax: SoftmaxWeights, folder: Union[str, PathLike], dtype: str = "float32"
) -> None:
    """Writes `softmax.hdf5` and `vocabulary.txt` into an existing folder, see `write_arrays`."""
    arrays = {
        name: tensor.detach().float().cpu().numpy()
        for name, tensor in ((_WEIGHT, softmax.weight), (_BIAS, softmax.bias))
    }
    write_arrays(arrays, Path(folder) / SOFTMAX_FILE, dtype)
    counts: Sequence[Optional[int]] = softmax.counts or [None] * len(softmax.words)
    write_vocabulary(list(zip(softmax.words, counts)), Path(folder) / VOCABULARY_FILE)
