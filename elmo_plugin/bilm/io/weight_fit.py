"""Whether the tensors of a weight file are those that the options of a biLM ask for."""

import json
import re
from typing import Collection, Dict, Iterable, NamedTuple, Tuple

from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.util.errors import ConfigurationError

Shape = Tuple[int, ...]

_PARTS = {"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"}


class _Stored(NamedTuple):
    """A tensor as a file calls it."""

    name: str
    shape: Shape


def published_name(name: str) -> str:
    """
    What the published files call a tensor. In bilm-tf's dumps of a single layer the cell has no
    number, and those of a forward-only model keep TensorFlow's names for its parts.
    """
    cell = re.fullmatch(r"(RNN_\d+/RNN|rnn)/(?:MultiRNNCell/(Cell\d+)/)?LSTMCell/(.+)", name)
    if cell is None:
        return name
    direction, number, part = cell.groups()
    direction = "RNN_0/RNN" if direction == "rnn" else direction
    return f"{direction}/MultiRNNCell/{number or 'Cell0'}/LSTMCell/{_PARTS.get(part, part)}"


def check_fit(
    shapes: Dict[str, Shape],
    expected: Iterable[Tuple[str, Shape]],
    options: BilmOptions,
    weight_file: str,
) -> None:
    """
    # Parameters

    shapes : `Dict[str, Shape]`
        What the file holds.
    expected : `Iterable[Tuple[str, Shape]]`
        The published name and the shape of each tensor that the options ask for. A projection
        that bilm-tf does not have may be missing, see `_is_left_out`.
    options : `BilmOptions`
        For the settings that a message names.
    weight_file : `str`
        For messages.

    # Raises

    `ConfigurationError`
        If a tensor is missing, has another shape, is there twice, or has no place in the options.
    """
    stored: Dict[str, _Stored] = {}
    for name, shape in shapes.items():
        published = published_name(name)
        if published in stored:
            raise ConfigurationError(
                f"{weight_file} holds {stored[published].name} and {name}, two names of the same "
                "weights. Leave one of them out."
            )
        stored[published] = _Stored(name, shape)
    known = set()
    for name, shape in expected:
        known.add(name)
        if name in stored:
            _check_shape(stored[name], shape, weight_file)
        elif not _is_left_out(name, options, stored):
            raise ConfigurationError(
                f"{weight_file} does not fit its options: tensor {name} of shape {shape} is "
                f"missing.{_hint(name, options)}"
            )
    for name, found in stored.items():
        if name not in known:
            raise ConfigurationError(
                f"{weight_file} does not fit its options: it also holds {found.name} of shape "
                f"{found.shape}, which the options have no place for.{_hint(name, options)}"
            )


def _check_shape(found: _Stored, shape: Shape, weight_file: str) -> None:
    if found.shape == shape:
        return
    hint = ""
    if found.name == "char_embed" and found.shape[:1] == (shape[0] + 1,):
        hint = (
            " The file must not hold a row for padding: 261 characters in the weights belong to "
            "`n_characters` 262 in the options."
        )
    if found.name == "embedding":
        hint = " It has a row for each word of the vocabulary, `<S>`, `</S>` and `<UNK>` first."
    raise ConfigurationError(
        f"{weight_file} does not fit its options: expected shape {shape} for tensor {found.name}, "
        f"found {found.shape}.{hint}"
    )


def _is_left_out(name: str, options: BilmOptions, stored: Collection[str]) -> bool:
    """
    True for a tensor of a projection whose output is as wide as its input: bilm-tf leaves such
    projections out of the model, all of them or none. A file without them is read as one in which
    they are the identity. Hidden states of an LSTM lie between -1 and 1, so only a `proj_clip`
    below 1 would change them.
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
    """Which setting decides whether a file of weights has this tensor, if one does."""
    cnn, lstm = options.char_cnn, options.lstm
    if name.startswith("RNN_1/") and "/Cell0/" in name:
        return f" The options say `bidirectional` {str(options.bidirectional).lower()}."
    if name in ("embedding", "char_embed"):
        if cnn is None:
            return " The options have no `char_cnn`: this biLM reads token embeddings."
        return " The options have `char_cnn`: this biLM reads characters."
    if cnn is not None and name.startswith("CNN_proj/"):
        return (
            f" The options say `char_cnn.projection` {str(cnn.projection).lower()}; false is for "
            "filters that are the token layer themselves."
        )
    if name.endswith("/W_P_0") and "/Cell0/" in name:
        return (
            f" The options say `lstm.projection_dim` {json.dumps(lstm.projection_dim)}; bilm-tf "
            "projects only to fewer than `lstm.dim`; null is for no projection."
        )
    return ""
