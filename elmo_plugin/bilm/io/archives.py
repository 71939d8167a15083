"""Reads biLMs from trained AllenNLP models without building those models."""

import os
import tarfile
from dataclasses import dataclass
from os import PathLike
from typing import Any, Dict, List, Optional, Tuple, Union

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.io.predicted_words import read_predicted_words
from elmo_plugin.bilm.io.shipped import restore_shipped_bilm
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.stored_options import STORED_OPTIONS, decode_stored_options
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path
from elmo_plugin.util.quantized import dequantize
from elmo_plugin.util.unpacking import read_config, unpacked
from elmo_plugin.util.weights import find_weights, read_state, trained_weights, with_prefix


@dataclass(frozen=True)
class TrainedModel:
    """
    The parameters of a trained model, from its `model.tar.gz` or its serialization directory.

    Nothing in the archive is executed, and its classes are not needed: a `Bilm` stores its options
    beside its parameters, so that it is found in any model, under any name.
    """

    #: The state dict, memory-mapped.
    parameters: Dict[str, torch.Tensor]
    #: For a language model, the words that it predicts, and their counts if they are known.
    words: Optional[List[str]]
    counts: Optional[List[int]]
    #: Its name in error messages.
    location: str
    #: The content of its `config.json`; empty if there is none.
    config: Dict[str, Any]

    @classmethod
    def read(cls, archive: Union[str, PathLike], location: Optional[str] = None) -> "TrainedModel":
        """
        Reads a `model.tar.gz` or a serialization directory, a local path or a URL; raises
        `ConfigurationError` if it does not exist, cannot be read, or is not safe to unpack.
        `location` is its name in error messages, by default the path.
        """
        location = location or str(archive)
        with unpacked(archive) as folder:
            weights = trained_weights(folder, location)
            parameters = read_state(weights, f"{location} ({weights.name})")
            _check_tensors(parameters, f"{location} ({weights.name})")
            restore_shipped_bilm(parameters, location)
            dequantize(parameters)
            words, counts = read_predicted_words(folder)
            return cls(parameters, words, counts, location, read_config(folder, location))

    def bilm(self, name: Optional[str] = None) -> Bilm:
        """
        A biLM of the model, fine-tuned or not.

        # Parameters

        name : `Optional[str]`, optional (default = `None`)
            Its name in the model, such as `text_field_embedder.token_embedder_elmo.bilm`; not
            needed if there is only one.

        # Raises

        `ConfigurationError`
            If there is no biLM, none of that name, or several and no name.
        """
        options, source, parameters = self._stored(name)
        bilm = Bilm(options, source=source)
        bilm.load_state_dict(parameters)
        return bilm.eval()

    def load_into(self, bilm: Bilm) -> None:
        """
        Copies the parameters of the only biLM of the model into `bilm`.

        # Raises

        `ConfigurationError`
            As `bilm`, and if the options differ.
        """
        found, _, parameters = self._stored()
        if found != bilm.options:
            raise ConfigurationError(
                f"{self.location} does not fit the options: {bilm.options.difference(found)}. "
                "Use the options with which it was trained."
            )
        bilm.load_state_dict(parameters)

    def _stored(
        self, name: Optional[str] = None
    ) -> Tuple[BilmOptions, str, Dict[str, torch.Tensor]]:
        """Options, options file and parameters of a biLM, see `bilm`."""
        bilms = stored_options_by_prefix(self.parameters)
        prefix = self._prefix(name, list(bilms))
        options = BilmOptions.from_dict(bilms[prefix]["options"], self.location)
        return options, bilms[prefix]["options_file"], with_prefix(prefix, self.parameters)

    def _prefix(self, name: Optional[str], prefixes: List[str]) -> str:
        names = ", ".join(prefix.removesuffix(".") for prefix in prefixes)
        if not prefixes:
            raise ConfigurationError(
                f"{self.location} holds no biLM: expected a model trained as `elmo-bilm` or with "
                "an `elmo-token-embedder`."
            )
        if name is None and len(prefixes) > 1:
            raise ConfigurationError(
                f"{self.location} holds {len(prefixes)} biLMs; name one of them: {names}."
            )
        if name is not None and f"{name}." not in prefixes:
            raise ConfigurationError(
                f"{self.location}: expected the name of a biLM in it ({names}), found {name!r}."
            )
        return prefixes[0] if name is None else f"{name}."


def stored_options_by_prefix(parameters: Dict[str, torch.Tensor]) -> Dict[str, Dict[str, Any]]:
    """
    What each biLM in a model has stored, see `decode_stored_options`, by the prefix of the names of
    its parameters.
    """
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
        return tarfile.is_tarfile(local)
    except EOFError:
        # A truncated compressed file; reading it raises the error for users.
        return True


def _check_tensors(parameters: Dict[str, Any], location: str) -> None:
    for name, value in parameters.items():
        if not isinstance(value, torch.Tensor):
            raise ConfigurationError(
                f"{location}: expected tensors and their names, found {type(value).__name__} "
                f"{name!r}. Use the weights of a trained model."
            )
