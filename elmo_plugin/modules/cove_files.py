"""Files of CoVe's encoder, in the layout of the published one."""

import os
from os import PathLike
from typing import Any, Dict, List, Tuple, Union

import torch

from elmo_plugin.modules.cove_encoder import CoveEncoder
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path
from elmo_plugin.util.weights import read_state, save_atomically, with_prefix

# Suffixes of the names: forward, backward.
_DIRECTIONS = ("", "_reverse")
# The attribute that holds the encoder in every model, and so part of the names of its parameters.
NAME = "cove_encoder"
# A tensor of the second layer, whose name shows the prefix of all names.
_LAST = "weight_ih_l1"


def read_cove_encoder(weight_file: Union[str, PathLike]) -> CoveEncoder:
    """
    An encoder from a state dict in the layout of the published one: that of
    `torch.nn.LSTM(300, 300, num_layers=2, bidirectional=True)`, of any widths. Nothing in the file
    is executed.

    # Parameters

    weight_file : `Union[str, PathLike]`
        A local path or a URL, see `local_path`. The names may have a prefix, as in the state dict
        of a model that contains the LSTM (`rnn.weight_ih_l0`); tensors without that prefix
        are ignored. A file without a prefix must hold nothing else.

    # Returns

    `CoveEncoder`
        In evaluation mode, its parameters not requiring gradients.

    # Raises

    `ConfigurationError`
        If the file is missing or damaged, or if a tensor is missing, has another shape, numbers
        that are not finite, or does not belong to a bidirectional LSTM of two layers.

    # Examples

        encoder = read_cove_encoder("wmtlstm-8f474287.pth")
        first, second = encoder(vectors, mask)
    """
    location = os.fspath(weight_file)
    try:
        state = read_state(local_path(weight_file), location)
    except FileNotFoundError:
        raise ConfigurationError(
            f"CoVe's weight file {location} does not exist. Set ELMO_COVE, or `weight_file`, to "
            "the published state dict or to one that `elmo export-cove` has written."
        ) from None
    tensors = _without_prefix(state, location)
    encoder = _empty_encoder(*_checked_widths(tensors, location))
    with torch.no_grad():
        for number, direction, layer in _layers(encoder):
            of_layer = f"l{number}{direction}"
            layer.input.weight.copy_(tensors[f"weight_ih_{of_layer}"])
            layer.recurrent.weight.copy_(tensors[f"weight_hh_{of_layer}"])
            biases = (tensors[f"bias_{part}_{of_layer}"].float() for part in ("ih", "hh"))
            layer.bias.copy_(sum(biases))
    return encoder


def stored_cove_encoder(parameters: Dict[str, torch.Tensor], location: str) -> CoveEncoder:
    """
    The encoder of a trained model that contains one under the name `cove_encoder`: a translation
    model or one with an `elmo-cove`.

    # Parameters

    parameters : `Dict[str, torch.Tensor]`
        The state dict of the model.
    location : `str`
        Its name in error messages.

    # Returns

    `CoveEncoder`
        In evaluation mode, its parameters not requiring gradients.

    # Raises

    `ConfigurationError`
        If there is no encoder, or several that differ.
    """
    found = [with_prefix(prefix, parameters) for prefix in _prefixes(parameters)]
    if not found:
        raise ConfigurationError(
            f"{location} holds no encoder of CoVe: expected a model trained as `elmo-translation`, "
            "or with an `elmo-cove`."
        )
    for other in found[1:]:
        if any(not torch.equal(value, other[name]) for name, value in found[0].items()):
            raise ConfigurationError(f"{location} holds {len(found)} encoders of CoVe that differ.")
    input_dim = found[0]["forward_layers.0.input.weight"].size(1)
    hidden_dim = found[0]["forward_layers.0.recurrent.weight"].size(1)
    encoder = _empty_encoder(input_dim, hidden_dim)
    encoder.load_state_dict(found[0])
    return encoder


def write_cove_encoder(encoder: CoveEncoder, weight_file: Union[str, PathLike]) -> None:
    """Writes an encoder as a file that `read_cove_encoder` and `torch.nn.LSTM` read."""
    save_atomically(published_state(encoder), weight_file)


def published_state(encoder: CoveEncoder) -> Dict[str, torch.Tensor]:
    """
    The parameters with the names and shapes of the published state dict. PyTorch's LSTM adds up
    two biases; the second is zero here.
    """
    state = {}
    for number, direction, layer in _layers(encoder):
        of_layer = f"l{number}{direction}"
        state[f"weight_ih_{of_layer}"] = layer.input.weight.detach().cpu().clone()
        state[f"weight_hh_{of_layer}"] = layer.recurrent.weight.detach().cpu().clone()
        state[f"bias_ih_{of_layer}"] = layer.bias.detach().cpu().clone()
        state[f"bias_hh_{of_layer}"] = torch.zeros_like(state[f"bias_ih_{of_layer}"])
    return state


def _empty_encoder(input_dim: int, hidden_dim: int) -> CoveEncoder:
    # The weights drawn here are replaced; the global random state stays as it was.
    with torch.random.fork_rng(devices=[]):
        return CoveEncoder(input_dim, hidden_dim).eval().requires_grad_(False)


def _prefixes(parameters: Dict[str, torch.Tensor]) -> List[str]:
    first = f"{NAME}.forward_layers.0.input.weight"
    ends = (name for name in parameters if name == first or name.endswith(f".{first}"))
    return [name.removesuffix(first) + f"{NAME}." for name in ends]


def _layers(encoder: CoveEncoder) -> List[Tuple[int, str, Any]]:
    """Number, direction and module of each layer. Gates have PyTorch's order, see `LstmCell`."""
    return [
        (number, direction, layer)
        for direction, layers in zip(_DIRECTIONS, (encoder.forward_layers, encoder.backward_layers))
        for number, layer in enumerate(layers)
    ]


def _without_prefix(state: Dict[str, Any], location: str) -> Dict[str, torch.Tensor]:
    """The tensors of the LSTM, by their names in it."""
    prefixes = [name.removesuffix(_LAST) for name in map(str, state) if name.endswith(_LAST)]
    if len(prefixes) != 1:
        found = ", ".join(sorted(map(str, state))[:4]) or "nothing"
        raise ConfigurationError(
            f"{location}: expected the state dict of one bidirectional LSTM of two layers, with a "
            f"tensor {_LAST}, found {len(prefixes)} tensors of that name among {len(state)} "
            f"({found} …). CoVe's published file is such a state dict."
        )
    return with_prefix(prefixes[0], state)


def _checked_widths(tensors: Dict[str, torch.Tensor], location: str) -> Tuple[int, int]:
    """Input and hidden width, after a check of all names, shapes and numbers."""
    widths = []
    for name in ("weight_ih_l0", "weight_hh_l0"):
        matrix = tensors.get(name)
        if not isinstance(matrix, torch.Tensor) or matrix.dim() != 2 or not matrix.numel():
            raise ConfigurationError(f"{location}: expected a matrix {name}, found none.")
        widths.append(matrix.size(1))
    lstm = torch.nn.LSTM(*widths, num_layers=2, bidirectional=True, device="meta")
    try:
        lstm.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        # What precedes the first colon only names the class.
        problems = " ".join(str(error).split()).partition(": ")[2]
        raise ConfigurationError(
            f"{location}: expected a bidirectional LSTM of two layers without projections, with "
            f"inputs of width {widths[0]} and hidden states of width {widths[1]}, as weight_ih_l0 "
            f"and weight_hh_l0 have. {problems}"
        ) from error
    for name, tensor in tensors.items():
        if not bool(tensor.isfinite().all()):
            raise ConfigurationError(
                f"{location}: expected finite numbers in tensor {name}, found NaN or infinity."
            )
    return widths[0], widths[1]
