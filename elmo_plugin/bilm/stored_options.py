"""What a `Bilm` stores beside its weights: its options, and the name of their file."""

import json
from typing import Any, Dict

import torch

#: The name of the buffer.
STORED_OPTIONS = "options_json"


def encode_stored_options(options: Dict[str, Any], options_file: str) -> torch.Tensor:
    """The bytes of a JSON object with both; `options` is the content of an options file."""
    text = json.dumps({"options_file": options_file, "options": options}, sort_keys=True)
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def decode_stored_options(stored: torch.Tensor) -> Dict[str, Any]:
    """`options` and `options_file`."""
    return json.loads(bytes(stored.cpu().numpy()))
