"""
The weights of a biLM in bilm-tf's layout, in HDF5 or safetensors.

One table (`_entries`) maps the tensors of a file to parameters, in reading and in writing, so that
a file that is read and written again is the same bit for bit. The table has the tensor names of
the published files; other names that bilm-tf uses are read too, see `_published_name`.
"""

import re
from dataclasses import dataclass
from os import PathLike
from typing import Callable, Collection, Dict, Iterator, List, Tuple, Union

import numpy
import torch

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.arrays import Shape, read_arrays, write_arrays
from elmo_plugin.bilm.fingerprint import weights_type
from elmo_plugin.bilm.options import BilmOptions, CharacterCnnOptions, LstmOptions
from elmo_plugin.util.errors import ConfigurationError

WEIGHT_FILE = "weights.hdf5"

_PARTS = {"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"}
# What decides whether a file has a tensor, by a part of its name.
_DECIDED_BY = {
    "^(embedding|char_embed)$": "`char_cnn` (null or missing for token embeddings)",
    "^CNN_proj/": "`char_cnn.projection` (false if the filters are the token layer)",
    "/W_P_0$": "`lstm.projection_dim` (bilm-tf projects only to fewer than `lstm.dim`)",
    "/Cell[1-9]": "`lstm.n_layers`",
    "^RNN_1/": "`bidirectional`",
}
_ROWS = {
    "char_embed": " It has no row for padding: 261 rows belong to `n_characters` 262.",
    "embedding": " It has a row for each word of the vocabulary, `<S>`, `</S>` and `<UNK>` first.",
}


@dataclass(frozen=True)
class _Entry:
    """
    One tensor of a weight file and its parameters: `to_parameters` splits the array of the file,
    `to_file` joins the parameters to that array.
    """

    name: str
    shape: Shape
    parameters: Tuple[str, ...]
    to_parameters: Callable[[numpy.ndarray], List[numpy.ndarray]]
    to_file: Callable[[List[numpy.ndarray]], numpy.ndarray]


def read_weights(
    options: BilmOptions, weight_file: Union[str, PathLike]
) -> Dict[str, torch.Tensor]:
    """
    The parameters of a biLM of these options, from a file of arrays, see `read_arrays`. All shapes
    are checked before an array is read. Raises `ConfigurationError` if there is no such file, it
    cannot be read, or it does not fit the options: the message names the tensor and both shapes.
    """
    entries = {entry.name: entry for entry in _entries(options)}
    # The names in the file, by the published ones.
    stored: Dict[str, str] = {}

    def choose(shapes: Dict[str, Shape]) -> Collection[str]:
        # The softmax, which a file may also contain, is read by `files.softmax`.
        weights = {n: shape for n, shape in shapes.items() if not n.startswith("softmax/")}
        expected = {name: entry.shape for name, entry in entries.items()}
        for problem in _problems(weights, expected, options, stored):
            raise ConfigurationError(f"{weight_file} {problem}")
        return weights

    try:
        arrays = read_arrays(weight_file, choose)
    except FileNotFoundError:
        raise ConfigurationError(
            f"biLM weight file {weight_file} does not exist. Set `weight_file` (or ELMO_WEIGHTS) "
            "to the weights of the biLM."
        ) from None
    parameters = {}
    for name, entry in entries.items():
        # Only projections that are the identity can be missing. `pop` frees RAM.
        array = arrays.pop(stored[name]) if name in stored else _identity(entry.shape)
        for parameter, part in zip(entry.parameters, entry.to_parameters(array)):
            parameters[parameter] = torch.from_numpy(part)
    return parameters


def save_weights(bilm: Bilm, weight_file: Union[str, PathLike], dtype: str = "float32") -> None:
    """
    Writes the parameters of a biLM in bilm-tf's layout: as safetensors if the suffix of
    `weight_file` is `.safetensors`, and else as HDF5. `dtype` is `float32`, or `float16` for half
    the size. Raises `ValueError` if `dtype` is neither, a weight is not finite or too large for it,
    or the weights of `bilm` are int8.
    """
    if weights_type(bilm) == "int8":
        raise ValueError(
            "Weight files: expected a biLM of float32 or bfloat16, found int8. Load it with "
            "another `dtype`."
        )
    parameters = {
        name: parameter.detach().float().cpu().numpy()
        for name, parameter in bilm.named_parameters()
    }
    arrays = {
        entry.name: entry.to_file([parameters[name] for name in entry.parameters])
        for entry in _entries(bilm.options)
    }
    write_arrays(arrays, weight_file, dtype)


def _identity(shape: Shape) -> numpy.ndarray:
    return numpy.eye(*shape) if len(shape) == 2 else numpy.zeros(shape)


def _entries(options: BilmOptions) -> Iterator[_Entry]:
    """The table: every tensor of a weight file of these options."""
    lstm = options.lstm
    if options.char_cnn is None:
        assert options.words is not None
        yield _embedding("embedding", (len(options.words), options.token_dim))
    else:
        yield from _character_encoder(options.char_cnn, options.token_dim)
    stacks = ("forward_layers", "backward_layers") if options.bidirectional else ("forward_layers",)
    for direction, stack in enumerate(stacks):
        for number in range(lstm.n_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            input_dim = lstm.output_dim if number else options.token_dim
            yield from _lstm_cell(cell, f"lstm.{stack}.{number}", input_dim, lstm)


def _embedding(name: str, shape: Tuple[int, int]) -> _Entry:
    """The file has no row for padding (id 0), the parameter has one."""
    return _Entry(
        name,
        shape,
        ("character_encoder.embedding.weight",),
        lambda array: [numpy.pad(array, ((1, 0), (0, 0)))],
        lambda parts: parts[0][1:],
    )


def _character_encoder(cnn: CharacterCnnOptions, token_dim: int) -> Iterator[_Entry]:
    yield _embedding("char_embed", (cnn.n_characters - 1, cnn.embedding_dim))
    for number, (width, filters) in enumerate(cnn.filters):
        name = f"character_encoder.convolutions.{number}"
        yield _convolution(f"CNN/W_cnn_{number}", (1, width, cnn.embedding_dim, filters), name)
        yield _vector(f"CNN/b_cnn_{number}", filters, f"{name}.bias")
    dim = cnn.num_filters
    for number in range(cnn.n_highway):
        for part, ours in (("carry", "gate"), ("transform", "transform")):
            name = f"character_encoder.highways.{number}.{ours}"
            yield _matrix(f"CNN_high_{number}/W_{part}", (dim, dim), f"{name}.weight")
            yield _vector(f"CNN_high_{number}/b_{part}", dim, f"{name}.bias")
    if cnn.projection:
        name = "character_encoder.projection"
        yield _matrix("CNN_proj/W_proj", (dim, token_dim), f"{name}.weight")
        yield _vector("CNN_proj/b_proj", token_dim, f"{name}.bias")


def _vector(name: str, size: int, parameter: str) -> _Entry:
    return _Entry(name, (size,), (parameter,), lambda array: [array], lambda parts: parts[0])


def _matrix(name: str, shape: Tuple[int, int], parameter: str) -> _Entry:
    """Transposed, because TensorFlow computes `x @ W` and PyTorch `x @ W.T`."""
    return _Entry(name, shape, (parameter,), lambda array: [array.T], lambda parts: parts[0].T)


def _convolution(name: str, shape: Tuple[int, int, int, int], parameter: str) -> _Entry:
    """Our convolutions multiply flattened windows: (filters, width * embedding_dim)."""
    return _Entry(
        name,
        shape,
        (f"{parameter}.weight",),
        lambda array: [array.reshape(-1, shape[-1]).T],
        lambda parts: parts[0].T.reshape(shape),
    )


def _lstm_cell(cell: str, parameter: str, input_dim: int, options: LstmOptions) -> Iterator[_Entry]:
    """TensorFlow joins input and recurrent weights; its gate order is i, g, f, o."""
    dim = options.dim

    def reorder(array: numpy.ndarray) -> numpy.ndarray:
        """Exchanges the two middle gates, in reading and writing."""
        first, second, third, fourth = numpy.split(array, 4, axis=-1)
        return numpy.concatenate([first, third, second, fourth], axis=-1)

    yield _Entry(
        f"{cell}/W_0",
        (input_dim + options.output_dim, 4 * dim),
        (f"{parameter}.input.weight", f"{parameter}.recurrent.weight"),
        lambda array: [part.T for part in numpy.split(reorder(array), [input_dim])],
        lambda parts: reorder(numpy.concatenate([part.T for part in parts])),
    )
    yield _Entry(
        f"{cell}/B",
        (4 * dim,),
        (f"{parameter}.bias",),
        lambda array: [reorder(array)],
        lambda parts: reorder(parts[0]),
    )
    if options.projection_dim is not None:
        shape = (dim, options.projection_dim)
        yield _matrix(f"{cell}/W_P_0", shape, f"{parameter}.projection.weight")


def _published_name(name: str) -> str:
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


def _problems(
    shapes: Dict[str, Shape],
    expected: Dict[str, Shape],
    options: BilmOptions,
    stored: Dict[str, str],
) -> Iterator[str]:
    """
    In what the tensors of a file, `shapes`, are not those that the options require. Fills `stored`
    with the names in the file by the published names.
    """
    for name in shapes:
        other = stored.setdefault(_published_name(name), name)
        if other != name:
            yield (
                f"holds {other} and {name}, two names of the same weights. Leave one of them out."
            )
    location = "does not fit its options:"
    for name, shape in expected.items():
        if name not in stored:
            if not _is_left_out(name, options, stored):
                yield f"{location} tensor {name} of shape {shape} is missing.{_hint(name)}"
        elif (found := shapes[stored[name]]) != shape:
            wrong = f"expected shape {shape} for tensor {stored[name]}, found {found}."
            yield f"{location} {wrong}{_ROWS.get(name, '')}"
    for name, there in stored.items():
        if name not in expected:
            yield (
                f"{location} it also holds tensor {there} of shape {shapes[there]}, which a biLM "
                f"of these options does not have.{_hint(name)}"
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
    is_same = lstm.projection_dim == lstm.dim and (lstm.proj_clip or 1.0) >= 1.0
    part = "/W_P_0"
    return name.endswith(part) and is_same and not any(other.endswith(part) for other in stored)


def _hint(name: str) -> str:
    """The setting that decides whether a weight file has this tensor; empty if none does."""
    settings = [setting for pattern, setting in _DECIDED_BY.items() if re.search(pattern, name)]
    return f" In the options, {settings[0]} decides about it." if settings else ""
