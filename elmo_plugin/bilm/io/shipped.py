"""The biLM that comes with the package, and weights of trained models that leave it out."""

from functools import lru_cache
from typing import Dict

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.bilm.io.weight_files import load_weights
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.stored_options import STORED_OPTIONS, decode_bytes
from elmo_plugin.environment import DEFAULTS
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resources import shipped

#: In a state dict that leaves out a biLM: its fingerprint, under the name that the biLM has there.
FINGERPRINT = "fingerprint"


@lru_cache(maxsize=1)
def shipped_bilm() -> Bilm:
    """The default biLM, whatever `ELMO_WEIGHTS` is. Not to be changed."""
    bilm = Bilm(BilmOptions.from_file(shipped(DEFAULTS["ELMO_OPTIONS"])))
    load_weights(bilm, shipped(DEFAULTS["ELMO_WEIGHTS"]))
    return bilm.eval()


def restore_shipped_bilm(parameters: Dict[str, torch.Tensor], location: str) -> None:
    """
    Adds the weights of the biLM that comes with the package to a state dict that leaves them out.
    Raises `ConfigurationError` if it belongs to another biLM; `location` is its name there.
    """
    for name in [name for name in parameters if str(name).split(".")[-1] == FINGERPRINT]:
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
