"""What a `Bilm` stores beside its weights: its options, and the name of their file."""

import json
from typing import Any, Dict

import torch

from elmo_plugin.util.errors import ConfigurationError

#: The name of the buffer.
STORED_OPTIONS = "options_json"


def encode_stored_options(options: Dict[str, Any], options_file: str) -> torch.Tensor:
    """JSON of both, see `encode_bytes`; `options` is the content of an options file."""
    text = json.dumps({"options_file": options_file, "options": options}, sort_keys=True)
    return encode_bytes(text.encode())


def decode_stored_options(stored: torch.Tensor) -> Dict[str, Any]:
    """`options` and `options_file`; a `ConfigurationError` if other numbers are there."""
    try:
        content = json.loads(decode_bytes(stored))
    except ValueError as error:
        raise ConfigurationError(
            f"Expected the options of a biLM as JSON in the parameter {STORED_OPTIONS}, found "
            "other numbers. Leave them as they are when you change the weights of a model."
        ) from error
    # Defaults of the versions that wrote archives without these two.
    content["options"]["lstm"].setdefault("use_skip_connections", False)
    if content["options"].get("char_cnn"):
        content["options"]["char_cnn"].setdefault("activation", "tanh")
    return content


def encode_bytes(content: bytes) -> torch.Tensor:
    """Bytes as floats: users convert and average whole state dicts, which keeps these numbers."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).float()


def decode_bytes(values: torch.Tensor) -> bytes:
    """Reverts `encode_bytes`, whatever the type; older archives have uint8."""
    return bytes(values.cpu().float().round().to(torch.uint8).numpy())
