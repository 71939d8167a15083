import hashlib

import torch

from elmo_plugin.bilm.bilm import Bilm


def fingerprint(bilm: Bilm) -> str:
    """
    A hash of what a biLM computes with: its options, and its weights with their types. Equal for
    equal biLMs, whatever files they were read from.

    # Parameters

    bilm : `Bilm`
        On any device.

    # Returns

    `str`
        32 hexadecimal digits.
    """
    digest = hashlib.blake2b(f"{bilm.options!r}".encode(), digest_size=16)
    # The words of token embeddings, which `repr` leaves out.
    digest.update(" ".join(bilm.options.words or ()).encode())
    for name, value in sorted(bilm.state_dict().items()):
        # This one also holds the name of the file that the options were read from.
        if name != "options_json":
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
