"""
The weights of a biLM in bilm-tf's layout, in HDF5 or safetensors. `_tensors` gives each tensor as
blocks of parameters, which reading fills and writing joins. So a file that is read and written
again is the same bit for bit.
"""

import re
from os import PathLike
from typing import Any, Collection, Dict, Iterator, List, Mapping, Tuple, Union

import torch
from torch.overrides import TorchFunctionMode

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.arrays import Shape, read_arrays, write_arrays
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.util.errors import ConfigurationError

WEIGHT_FILE = "weights.hdf5"

# The parts of a cell in TensorFlow 1.2 and later, and in 1.0 and 1.1.
_PARTS = {
    **{"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"},
    **{"weights": "W_0", "biases": "B", "projection/weights": "W_P_0"},
}
_CELL = re.compile(
    r"(?:(RNN_\d+)/)?(?:RNN|rnn)/(?:(?:MultiRNNCell|multi_rnn_cell)/(?:Cell|cell_)(\d+)/)?"
    r"(?:LSTMCell|lstm_cell)/(.+)"
)
# A tensor in a file as rows of blocks, which are views of parameters.
Blocks = List[List[torch.Tensor]]


def read_weights(
    options: BilmOptions, weight_file: Union[str, PathLike]
) -> Dict[str, torch.Tensor]:
    """
    The parameters of a biLM from a file of arrays. Raises `ConfigurationError` if it is missing,
    damaged, or does not fit the options. All shapes are checked before an array is read.
    """
    model = meta_parameters(options)
    expected = {name: _shape(blocks) for name, blocks in _tensors(options, model)}
    stored: Dict[str, str] = {}

    def choose(shapes: Dict[str, Shape]) -> Collection[str]:
        # The softmax, which a file may also contain, is read by `files.softmax`.
        weights = {n: shape for n, shape in shapes.items() if not n.startswith("softmax/")}
        stored.update(_check_fit(weights, expected, options, str(weight_file)))
        return weights

    try:
        arrays = read_arrays(weight_file, choose)
    except FileNotFoundError:
        raise ConfigurationError(
            f"biLM weight file {weight_file} does not exist. Set `weight_file` (or ELMO_WEIGHTS) "
            "to the weights of the biLM."
        ) from None
    parameters = {name: torch.zeros(each.shape) for name, each in model.items()}
    for name, blocks in _tensors(options, parameters):
        if name in stored:
            # `pop` frees RAM.
            _fill(blocks, torch.from_numpy(arrays.pop(stored[name])))
        elif (projection := blocks[0][0]).dim() == 2:
            # A projection that is left out is the identity.
            projection.copy_(torch.eye(len(projection)))
    return parameters


def save_weights(bilm: Bilm, weight_file: Union[str, PathLike], dtype: str = "float32") -> None:
    """
    Writes the weights of a biLM in bilm-tf's layout, as safetensors if the suffix of `weight_file`
    is `.safetensors`, and else as HDF5. `dtype` is `float32`, or `float16` for half the size.
    Raises `ValueError` for another `dtype`, or a weight that is not finite in it.
    """
    parameters = {name: each.detach().float().cpu() for name, each in bilm.named_parameters()}
    tensors = _tensors(bilm.options, parameters)
    write_arrays({name: _joined(blocks).numpy() for name, blocks in tensors}, weight_file, dtype)


def meta_parameters(options: BilmOptions) -> Dict[str, torch.Tensor]:
    """The parameters of a biLM without values: they take no memory, whatever the options say."""
    with torch.device("meta"), _NoInitialisation():
        return dict(Bilm(options).named_parameters())


class _NoInitialisation(TorchFunctionMode):
    """`torch.nn.init` does nothing in this context; on meta tensors it imports a compiler."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return None
        return function(*args, **(kwargs or {}))


def _tensors(
    options: BilmOptions, parameters: Mapping[str, torch.Tensor]
) -> Iterator[Tuple[str, Blocks]]:
    """Each tensor of a weight file, with its name there."""

    def linear(layer: str, weight: str, bias: str) -> Iterator[Tuple[str, Blocks]]:
        # TensorFlow computes `x @ W` and PyTorch `x @ W.T`.
        yield weight, [[parameters[f"{layer}.weight"].t()]]
        yield bias, [[parameters[f"{layer}.bias"]]]

    cnn, encoder = options.char_cnn, "character_encoder"
    # The file has no row for padding (id 0).
    embedding = parameters[f"{encoder}.embedding.weight"][1:]
    yield "embedding" if cnn is None else "char_embed", [[embedding]]
    if cnn is not None:
        for number, (width, _) in enumerate(cnn.filters):
            names = f"CNN/W_cnn_{number}", f"CNN/b_cnn_{number}"
            (_, [[weight]]), bias = linear(f"{encoder}.convolutions.{number}", *names)
            # Our convolutions multiply flattened windows.
            yield names[0], [[weight.unflatten(0, (1, width, cnn.embedding_dim))]]
            yield bias
        for number in range(cnn.n_highway):
            for part, ours in (("carry", "gate"), ("transform", "transform")):
                names = f"CNN_high_{number}/W_{part}", f"CNN_high_{number}/b_{part}"
                yield from linear(f"{encoder}.highways.{number}.{ours}", *names)
        if f"{encoder}.word_embedding.weight" in parameters:
            yield "word_embed", [[parameters[f"{encoder}.word_embedding.weight"][1:]]]
        if cnn.projection:
            yield from linear(f"{encoder}.projection", "CNN_proj/W_proj", "CNN_proj/b_proj")
    stacks = ("forward_layers", "backward_layers") if options.bidirectional else ("forward_layers",)
    for direction, stack in enumerate(stacks):
        for number in range(options.lstm.n_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            layer = f"lstm.{stack}.{number}"
            # TensorFlow joins input and recurrent weights.
            joined = (parameters[f"{layer}.{part}.weight"] for part in ("input", "recurrent"))
            yield f"{cell}/W_0", [[part.t() for part in _gates(each)] for each in joined]
            yield f"{cell}/B", [_gates(parameters[f"{layer}.bias"])]
            if options.lstm.projection_dim is not None:
                yield f"{cell}/W_P_0", [[parameters[f"{layer}.projection.weight"].t()]]


def _gates(parameter: torch.Tensor) -> List[torch.Tensor]:
    """The rows of the gates i, f, g, o, in TensorFlow's order: i, g, f, o."""
    i, f, g, o = parameter.chunk(4)
    return [i, g, f, o]


def _joined(blocks: Blocks) -> torch.Tensor:
    return torch.cat([torch.cat(row, dim=-1) for row in blocks])


def _shape(blocks: Blocks) -> Shape:
    """The shape of what `_joined` returns. On meta tensors, `torch.cat` imports a compiler."""
    *sizes, _ = blocks[0][0].shape
    if len(blocks) > 1:
        sizes[0] = sum(row[0].size(0) for row in blocks)
    return (*sizes, sum(block.size(-1) for block in blocks[0]))


def _fill(blocks: Blocks, values: torch.Tensor) -> None:
    """Reverts `_joined`: copies values into the blocks."""
    rows = values.split([row[0].size(0) for row in blocks]) if len(blocks) > 1 else [values]
    for row, row_values in zip(blocks, rows):
        for block, part in zip(row, row_values.split([each.size(-1) for each in row], dim=-1)):
            block.copy_(part)


def _published_name(name: str) -> str:
    """
    The name of a tensor in the published files. In bilm-tf's files of biLMs with one layer the cell
    has no number. Files of forward-only models have TensorFlow's names for the parts of a cell;
    checkpoints have them for all levels, depending on the version of TensorFlow.
    """
    cell = _CELL.fullmatch(name)
    if cell is None:
        return name
    direction, number, part = cell.groups()
    cell_name = f"{direction or 'RNN_0'}/RNN/MultiRNNCell/Cell{number or 0}/LSTMCell"
    return f"{cell_name}/{_PARTS.get(part, part)}"


def _check_fit(
    shapes: Dict[str, Shape], expected: Dict[str, Shape], options: BilmOptions, location: str
) -> Dict[str, str]:
    """The names in a file by published names. `ConfigurationError` if its tensors do not fit."""
    stored = {_published_name(name): name for name in shapes}
    for name in {**expected, **stored}:
        there = stored.get(name, name)
        right, found = expected.get(name), shapes.get(there)
        if right != found and not (found is None and _is_left_out(name, options, stored)):
            raise ConfigurationError(
                f"{location} does not fit its options: expected "
                f"{'no tensor' if right is None else f'shape {right} for tensor'} {there}, found "
                f"{'none' if found is None else found}."
            )
    return stored


def _is_left_out(name: str, options: BilmOptions, stored: Collection[str]) -> bool:
    """
    True for a projection that does not change the width and is not in the file: bilm-tf leaves out
    all or none. They are read as the identity. This is exact because hidden states lie between -1
    and 1, unless `proj_clip` is below 1.
    """
    cnn, lstm = options.char_cnn, options.lstm
    is_same, part = lstm.projection_dim == lstm.dim and (lstm.proj_clip or 1.0) >= 1.0, "/W_P_0"
    if cnn is not None and name.startswith("CNN_proj/"):
        is_same, part = cnn.num_features == options.token_dim, "CNN_proj/"
    return is_same and part in name and not any(part in other for other in stored)
