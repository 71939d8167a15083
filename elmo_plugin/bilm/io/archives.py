"""What trained AllenNLP models hold of a language model, read without building those models."""

import json
import os
import tarfile
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, Dict, List, Optional, Union

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.io.predicted_words import read_predicted_words
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path
from elmo_plugin.util.unpacking import unpacked
from elmo_plugin.util.weights import read_state, trained_weights

_IDENTITY = "options_json"


@dataclass(frozen=True)
class TrainedModel:
    """
    The parameters of a trained model, from its `model.tar.gz` or its serialization directory.

    Nothing in the archive is executed and none of its classes is needed: a `Bilm` keeps its
    options beside its parameters, so that it is found in any model, under any name.

    # Parameters

    parameters : `Dict[str, torch.Tensor]`
        The state dict, on disk until it is used.
    words, counts : `Optional[List[str]]`, `Optional[List[int]]`
        Of a language model: the words it predicts, and how often each occurs in its training text
        if that is known.
    place : `str`
        What error messages call it.
    """

    parameters: Dict[str, torch.Tensor]
    words: Optional[List[str]]
    counts: Optional[List[int]]
    place: str

    @classmethod
    def read(cls, archive: Union[str, PathLike]) -> "TrainedModel":
        """
        # Parameters

        archive : `Union[str, PathLike]`
            A `model.tar.gz` or a serialization directory: a local path or a URL, see `local_path`.

        # Raises

        `ConfigurationError`
            If there is no such archive, it cannot be read, or it is not safe to unpack.
        """
        with unpacked(archive) as folder:
            weights = trained_weights(folder, str(archive))
            parameters = read_state(weights, f"{archive} ({weights.name})")
            return cls(parameters, *read_predicted_words(folder), str(archive))

    def bilm(self, name: Optional[str] = None) -> Bilm:
        """
        A biLM as it is in the model, fine-tuned or not.

        # Parameters

        name : `Optional[str]`, optional (default = `None`)
            Its name in the model, such as `text_field_embedder.token_embedder_elmo.bilm`; not
            needed when there is only one.

        # Raises

        `ConfigurationError`
            If there is no biLM, or none of that name, or several and no name.
        """
        prefix = self._prefix(name)
        stored = stored_bilms(self.parameters)[prefix]
        options = BilmOptions.from_dict(stored["options"], self.place)
        bilm = Bilm(options, source=stored["options_file"])
        bilm.load_state_dict(self._below(prefix))
        return bilm.eval()

    def load_into(self, bilm: Bilm, name: Optional[str] = None) -> None:
        """
        Copies the parameters of a biLM of the same shape.

        # Parameters

        bilm : `Bilm`
            What to change.
        name : `Optional[str]`, optional (default = `None`)
            See `bilm`.

        # Raises

        `ConfigurationError`
            As `bilm`, and if the options differ.
        """
        prefix = self._prefix(name)
        stored = stored_bilms(self.parameters)[prefix]
        found = BilmOptions.from_dict(stored["options"], self.place)
        if found != bilm.options:
            raise ConfigurationError(
                f"{self.place} does not fit the options: {_difference(bilm.options, found)}. Take "
                "the options with which it was trained."
            )
        bilm.load_state_dict(self._below(prefix))

    def _prefix(self, name: Optional[str]) -> str:
        prefixes = list(stored_bilms(self.parameters))
        names = ", ".join(prefix.removesuffix(".") for prefix in prefixes)
        if not prefixes:
            raise ConfigurationError(
                f"{self.place} holds no biLM: expected a model trained as `elmo-bilm` or with an "
                "`elmo-token-embedder`."
            )
        if name is None and len(prefixes) > 1:
            raise ConfigurationError(
                f"{self.place} holds {len(prefixes)} biLMs; name one of them: {names}."
            )
        if name is not None and f"{name}." not in prefixes:
            raise ConfigurationError(
                f"{self.place}: expected the name of a biLM in it ({names}), found {name!r}."
            )
        return prefixes[0] if name is None else f"{name}."

    def _below(self, prefix: str) -> Dict[str, torch.Tensor]:
        return {
            name.removeprefix(prefix): value
            for name, value in self.parameters.items()
            if name.startswith(prefix)
        }


def stored_bilms(parameters: Dict[str, torch.Tensor]) -> Dict[str, Dict[str, Any]]:
    """
    What the biLMs of a model store beside their parameters: the content of `options_json`, see
    `Bilm`, by the prefix of the biLM's parameter names.
    """
    return {
        name.removesuffix(_IDENTITY): json.loads(bytes(value.numpy()))
        for name, value in parameters.items()
        if name.split(".")[-1] == _IDENTITY
    }


def is_archive(path: Union[str, PathLike]) -> bool:
    """True for a trained model, false for a file of weights and for a missing file."""
    try:
        local = local_path(path)
    except FileNotFoundError:
        return False
    if os.path.isdir(local):
        return True
    try:
        return tarfile.is_tarfile(local)
    except EOFError:
        # Of a truncated compressed file; reading it raises the error for users.
        return True


def _difference(expected: BilmOptions, found: BilmOptions) -> str:
    """The first setting that differs, by its name in the file."""
    sides = [
        {
            "bidirectional": options.bidirectional,
            **{
                f"{part}.{name}": value
                for part, settings in (("char_cnn", options.char_cnn), ("lstm", options.lstm))
                for name, value in (asdict(settings) if settings else {}).items()
            },
            "vocabulary": options.words,
        }
        for options in (expected, found)
    ]
    names = {**sides[0], **sides[1]}
    name = next(name for name in names if sides[0].get(name) != sides[1].get(name))
    values: List[Any] = [side.get(name) for side in sides]
    if name == "vocabulary":
        return f"expected a `vocabulary` of {len(values[0])} words, found {len(values[1])} others"
    return f"expected `{name}` {values[0]!r}, found {values[1]!r}"
