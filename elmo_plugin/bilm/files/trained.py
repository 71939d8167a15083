"""Reads biLMs from trained AllenNLP models without building those models."""

import os
import tarfile
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from typing import Any, Dict, List, Optional, Tuple, Union

import torch

from elmo_plugin.bilm.bilm import Bilm, fingerprint
from elmo_plugin.bilm.files.layout import read_weights
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.stored_options import STORED_OPTIONS, decode_bytes, decode_stored_options
from elmo_plugin.bilm.vocabulary_file import read_predicted_words
from elmo_plugin.environment import DEFAULTS
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path, shipped
from elmo_plugin.util.quantized import dequantize
from elmo_plugin.util.unpacking import read_config, unpacked
from elmo_plugin.util.weights import find_weights, read_trained_state, with_prefix

#: In a state dict that leaves out a biLM: its fingerprint, under the name that the biLM has there.
FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class TrainedModel:
    """
    The parameters of a trained model, from its `model.tar.gz` or its serialization directory.

    Nothing in the archive is executed and its classes are not needed: a `Bilm` stores its options
    beside its parameters, so it is found in any model, under any name.
    """

    #: The state dict, memory-mapped.
    parameters: Dict[str, torch.Tensor]
    #: Its name in error messages.
    location: str
    #: The content of its `config.json`; empty if there is none.
    config: Dict[str, Any]
    #: For a language model, the words that it predicts, and their counts if they are known.
    words: Optional[List[str]] = None
    counts: Optional[List[int]] = None

    @classmethod
    def read(cls, archive: Union[str, PathLike], location: Optional[str] = None) -> "TrainedModel":
        """
        Reads a model from a path or URL, which errors call `location`. Raises `ConfigurationError`
        if it does not exist, cannot be read, or is not safe to unpack.
        """
        location = location or str(archive)
        with unpacked(archive) as folder:
            parameters = read_trained_state(folder, location)
            for name, value in parameters.items():
                if not isinstance(value, torch.Tensor):
                    raise ConfigurationError(
                        f"{location} (weights): expected tensors and their names, found "
                        f"{type(value).__name__} {name!r}. Use the weights of a trained model."
                    )
            restore_shipped_bilm(parameters, location)
            dequantize(parameters)
            words, counts = read_predicted_words(folder)
            return cls(parameters, location, read_config(folder, location), words, counts)

    def bilm(self) -> Bilm:
        """The biLM of the model, fine-tuned or not. `ConfigurationError` unless it has one."""
        options, source, parameters = self._stored()
        bilm = Bilm(options, source=source)
        bilm.load_state_dict(parameters)
        return bilm.eval()

    def only_options(self) -> BilmOptions:
        """The options of the only biLM. Raises `ConfigurationError` if there is none or several."""
        return self._stored()[0]

    def parameters_of(self, options: BilmOptions) -> Dict[str, torch.Tensor]:
        """The state dict of the only biLM, which must have these options and finite numbers."""
        found, _, parameters = self._stored()
        if found != options:
            raise ConfigurationError(
                f"{self.location} does not fit the options: {options.difference(found)}. "
                "Use the options with which it was trained."
            )
        for name, parameter in parameters.items():
            if not bool(parameter.isfinite().all()):
                raise ConfigurationError(
                    f"{self.location}: expected finite numbers in parameter {name} of the biLM, "
                    "found NaN or infinity. The training diverged; use another checkpoint."
                )
        return parameters

    def _stored(self) -> Tuple[BilmOptions, str, Dict[str, torch.Tensor]]:
        """Options, options file and parameters of the only biLM."""
        bilms = stored_options_by_prefix(self.parameters)
        if len(bilms) != 1:
            names = ", ".join(prefix.removesuffix(".") for prefix in bilms)
            raise ConfigurationError(
                f"{self.location}: expected one biLM; the model holds {names or 'none'}. Models "
                "that are trained as `elmo-bilm` or with an `elmo-token-embedder` hold one."
            )
        ((prefix, stored),) = bilms.items()
        options = BilmOptions.from_dict(stored["options"], self.location)
        return options, stored["options_file"], with_prefix(prefix, self.parameters)


def stored_options_by_prefix(parameters: Dict[str, torch.Tensor]) -> Dict[str, Dict[str, Any]]:
    """What `decode_stored_options` returns for each biLM, by the prefix of its parameters."""
    return {
        name.removesuffix(STORED_OPTIONS): decode_stored_options(value)
        for name, value in parameters.items()
        if name.split(".")[-1] == STORED_OPTIONS
    }


def is_archive(path: Union[str, PathLike]) -> bool:
    """True for a trained model, false for a weight file, another folder and a missing file."""
    try:
        local = local_path(path)
    except FileNotFoundError:
        return False
    if os.path.isdir(local):
        return find_weights(local) is not None
    try:
        with open(local, "rb") as file:
            return tarfile.is_tarfile(file)
    except EOFError:
        # A truncated compressed file; reading it raises the error for users.
        return True


def read_parameters(
    options: BilmOptions, weight_file: Union[str, PathLike]
) -> Dict[str, torch.Tensor]:
    """The parameters of a biLM from a trained model or a file of arrays."""
    if is_archive(weight_file):
        return TrainedModel.read(weight_file).parameters_of(options)
    return read_weights(options, weight_file)


@lru_cache(maxsize=1)
def shipped_bilm() -> Bilm:
    """The biLM that comes with the package, whatever `ELMO_WEIGHTS` is. Do not change it."""
    options = BilmOptions.from_file(shipped(DEFAULTS["ELMO_OPTIONS"]))
    bilm = Bilm(options)
    bilm.load_state_dict(read_weights(options, shipped(DEFAULTS["ELMO_WEIGHTS"])), strict=False)
    return bilm.eval()


def restore_shipped_bilm(parameters: Dict[str, torch.Tensor], location: str) -> None:
    """
    Adds the weights of the biLM that comes with the package to a state dict that leaves them out.
    Raises `ConfigurationError`, which calls it `location`, if the biLM is another one.
    """
    for name in [name for name in parameters if name.split(".")[-1] == FINGERPRINT]:
        prefix = name.removesuffix(FINGERPRINT)
        # A parameter of another program may have this name.
        if f"{prefix}{STORED_OPTIONS}" not in parameters:
            continue
        bilm = shipped_bilm()
        expected, found = decode_bytes(parameters.pop(name)).hex(), fingerprint(bilm)
        if expected != found:
            raise ConfigurationError(
                f"{location} was packed for the biLM {expected}, but {found} comes with this "
                "version. Use the version of elmo_plugin with which it was packed."
            )
        for part, weight in bilm.state_dict().items():
            if part != STORED_OPTIONS:
                parameters[prefix + part] = weight
