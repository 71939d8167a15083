import hashlib

import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.stored_options import STORED_OPTIONS
from elmo_plugin.modules.linear.int8 import Int8Linear


def fingerprint(bilm: Bilm) -> str:
    """A hash of a biLM's options and weights, and of their types: 32 hexadecimal digits."""
    digest = hashlib.blake2b(f"{bilm.options!r}".encode(), digest_size=16)
    # `repr` does not contain the words of token embeddings.
    digest.update(" ".join(bilm.options.words or ()).encode())
    for name, value in sorted(bilm.state_dict().items()):
        # This buffer also contains the name of the options file.
        if name != STORED_OPTIONS:
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def weights_type(bilm: Bilm) -> str:
    """The type of the weights: `float32`, `bfloat16` or `int8`, see `load_bilm`."""
    if any(isinstance(module, Int8Linear) for module in bilm.modules()):
        return "int8"
    return str(next(bilm.parameters()).dtype).replace("torch.", "")
