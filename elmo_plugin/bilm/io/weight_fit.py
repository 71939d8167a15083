"""Checks the tensors of a weight file against the options of a biLM."""

import json
import re
from typing import Collection, Dict

from elmo_plugin.bilm.io.array_files import Shape
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.util.errors import ConfigurationError

_PARTS = {"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"}


def published_name(name: str) -> str:
    """
    The name of a tensor in the published files. In bilm-tf's files of biLMs with one layer the cell
    has no number; files of forward-only models have TensorFlow's names for the parts of a cell.
    """
    cell = re.fullmatch(r"(RNN_\d+/RNN|rnn)/(?:MultiRNNCell/(Cell\d+)/)?LSTMCell/(.+)", name)
    if cell is None:
        return name
    direction, number, part = cell.groups()
    direction = "RNN_0/RNN" if direction == "rnn" else direction
    return f"{direction}/MultiRNNCell/{number or 'Cell0'}/LSTMCell/{_PARTS.get(part, part)}"


def check_fit(
    shapes: Dict[str, Shape],
    expected: Dict[str, Shape],
    options: BilmOptions,
    weight_file: str,
) -> None:
    """
    Compares the tensors of a file, `shapes`, with those that the options require, `expected`, by
    their published names. Projections that bilm-tf leaves out may be missing, see `_is_left_out`.

    # Raises

    `ConfigurationError`
        If a tensor is missing, has another shape, occurs twice, or does not belong to the options.
    """
    stored: Dict[str, str] = {}
    for name in shapes:
        other = stored.setdefault(published_name(name), name)
        if other != name:
            raise ConfigurationError(
                f"{weight_file} holds {other} and {name}, two names of the same weights. Leave one "
                "of them out."
            )
    location = f"{weight_file} does not fit its options"
    for name, shape in expected.items():
        if name in stored:
            _check_shape(stored[name], shapes[stored[name]], shape, location)
        elif not _is_left_out(name, options, stored):
            raise ConfigurationError(
                f"{location}: tensor {name} of shape {shape} is missing.{_hint(name, options)}"
            )
    for name, found in stored.items():
        if name not in expected:
            raise ConfigurationError(
                f"{location}: it also holds tensor {found} of shape {shapes[found]}, which a biLM "
                f"of these options does not have.{_hint(name, options)}"
            )


def _check_shape(name: str, found: Shape, expected: Shape, location: str) -> None:
    if found == expected:
        return
    hint = ""
    if name == "char_embed" and found[:1] == (expected[0] + 1,):
        hint = (
            " The file must not have a row for padding: 261 rows in the weights belong to "
            "`n_characters` 262 in the options."
        )
    if name == "embedding":
        hint = " It has a row for each word of the vocabulary, `<S>`, `</S>` and `<UNK>` first."
    raise ConfigurationError(
        f"{location}: expected shape {expected} for tensor {name}, found {found}.{hint}"
    )


def _is_left_out(name: str, options: BilmOptions, stored: Collection[str]) -> bool:
    """
    True for a tensor of a projection that does not change the width, if the file has no such
    projection: bilm-tf leaves them out, all or none. They are read as the identity. Hidden states
    of an LSTM lie between -1 and 1, so only a `proj_clip` below 1 would change them.
    """
    cnn, lstm = options.char_cnn, options.lstm
    if cnn is not None and name.startswith("CNN_proj/"):
        is_same = cnn.num_filters == options.token_dim
        return is_same and not any(other.startswith("CNN_proj/") for other in stored)
    if name.endswith("/W_P_0"):
        is_same = lstm.projection_dim == lstm.dim and (lstm.proj_clip or 1.0) >= 1.0
        return is_same and not any(other.endswith("/W_P_0") for other in stored)
    return False


def _hint(name: str, options: BilmOptions) -> str:
    """The setting that decides whether a weight file has this tensor; empty if none does."""
    cnn, lstm = options.char_cnn, options.lstm
    if name.startswith("RNN_1/") and "/Cell0/" in name:
        return f" In the options, `bidirectional` is {str(options.bidirectional).lower()}."
    if name in ("embedding", "char_embed"):
        if cnn is None:
            return " The options have no `char_cnn`: this biLM has token embeddings."
        return " The options have `char_cnn`: this biLM reads characters."
    if cnn is not None and name.startswith("CNN_proj/"):
        return (
            f" In the options, `char_cnn.projection` is {str(cnn.projection).lower()}; false is "
            "for filters that are used as the token layer."
        )
    if name.endswith("/W_P_0") and "/Cell0/" in name:
        return (
            f" In the options, `lstm.projection_dim` is {json.dumps(lstm.projection_dim)}; null is "
            "for no projection. bilm-tf projects only to fewer than `lstm.dim`."
        )
    return ""
