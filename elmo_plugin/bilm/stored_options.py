"""Options and other bytes in a state dict, as tensors of floats."""

import json
from typing import Any, Dict

import torch

from elmo_plugin.util.errors import ConfigurationError

#: The name of the buffer in which a `Bilm` stores its options and the name of their file.
STORED_OPTIONS = "options_json"


def encode_stored_options(options: Dict[str, Any], options_file: str) -> torch.Tensor:
    """Encodes the content and the name of an options file as JSON, see `encode_bytes`."""
    text = json.dumps({"options_file": options_file, "options": options}, sort_keys=True)
    return encode_bytes(text.encode())


def decode_stored_options(stored: torch.Tensor) -> Dict[str, Any]:
    """Returns `options` and `options_file`. Raises `ConfigurationError` for other numbers."""
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
    """Bytes as floats, which stay the same when users convert or average whole state dicts."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).float()


def decode_bytes(values: torch.Tensor) -> bytes:
    """Reverts `encode_bytes`, whatever the type is now; older archives have uint8."""
    return bytes(values.cpu().float().round().to(torch.uint8).numpy())
