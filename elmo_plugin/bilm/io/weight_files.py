"""
The weights of a biLM in files: HDF5 in bilm-tf's layout, or safetensors with the same names.

One table (`_entries`) maps the tensors of a file to parameters, in reading and in writing, so that
a file that is read and written again is the same bit for bit. The table has the tensor names of
the published files; other names that bilm-tf uses are read too, see `weight_fit`.
"""

from dataclasses import dataclass
from os import PathLike
from typing import Callable, Collection, Dict, Iterator, List, Tuple, Union

import numpy
import torch

from elmo_plugin.bilm.character_cnn_options import CharacterCnnOptions
from elmo_plugin.bilm.io.array_files import Shape, read_arrays, write_arrays
from elmo_plugin.bilm.io.weight_fit import check_fit, published_name
from elmo_plugin.bilm.options import BilmOptions, LstmOptions
from elmo_plugin.modules.linear.int8 import Int8Linear
from elmo_plugin.util.errors import ConfigurationError

WEIGHT_FILE = "weights.hdf5"


class ModuleWithOptions(torch.nn.Module):
    """The base class of `Bilm`, which imports this module and so cannot be imported here."""

    options: BilmOptions


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


def load_weights(bilm: ModuleWithOptions, weight_file: Union[str, PathLike]) -> None:
    """Reads the parameters of a biLM from a file; for errors see `read_weights`."""
    _check_no_int8(bilm)
    bilm.load_state_dict(read_weights(bilm.options, weight_file), strict=False)
    # Drops packed copies of the old weights, see `PackedLinear`.
    bilm.train(bilm.training)


def read_weights(
    options: BilmOptions, weight_file: Union[str, PathLike]
) -> Dict[str, torch.Tensor]:
    """
    The parameters of a biLM of these options, from a file of arrays, see `read_arrays`. All shapes
    are checked before an array is read.

    # Raises

    `ConfigurationError`
        If there is no such file, it cannot be read, or it does not fit the options; the message
        names the tensor, the expected shape and the found one.
    """
    entries = list(_entries(options))

    def choose(shapes: Dict[str, Shape]) -> Collection[str]:
        # The softmax, which a file may also contain, is read by `softmax_files`.
        weights = {n: shape for n, shape in shapes.items() if not n.startswith("softmax/")}
        expected = {entry.name: entry.shape for entry in entries}
        check_fit(weights, expected, options, str(weight_file))
        return weights

    try:
        arrays = read_arrays(weight_file, choose)
    except FileNotFoundError:
        raise ConfigurationError(
            f"biLM weight file {weight_file} does not exist. Set `weight_file` (or ELMO_WEIGHTS) "
            "to the weights of the biLM."
        ) from None
    names = {published_name(name): name for name in arrays}
    parameters = {}
    for entry in entries:
        # After `check_fit`, only projections that are the identity can be missing. `pop` frees RAM.
        array = arrays.pop(names[entry.name]) if entry.name in names else _identity(entry.shape)
        for name, part in zip(entry.parameters, entry.to_parameters(array)):
            parameters[name] = torch.from_numpy(part)
    return parameters


def save_weights(
    bilm: ModuleWithOptions, weight_file: Union[str, PathLike], dtype: str = "float32"
) -> None:
    """
    Writes the parameters of a biLM in bilm-tf's layout; for file and `dtype` see `write_arrays`.

    # Raises

    `ValueError`
        If `dtype` is wrong, a weight is not finite or too large for it, or the weights of `bilm`
        are int8.
    """
    _check_no_int8(bilm)
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


def _check_no_int8(bilm: ModuleWithOptions) -> None:
    if any(isinstance(module, Int8Linear) for module in bilm.modules()):
        raise ValueError(
            "Weight files: expected a biLM of float32 or bfloat16, found int8. Load it with "
            "another `dtype`."
        )


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
