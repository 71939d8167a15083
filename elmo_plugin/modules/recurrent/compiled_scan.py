"""All time steps of recurrent layers in one compiled call, on a CPU."""

from ctypes import Structure, addressof, c_float, c_int64, c_void_p
from math import inf
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.modules.linear.panels import panels
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.scan import (
    LayerCall,
    RecurrentState,
    SavedActivations,
    dense_copy,
    outputs_of,
)
from elmo_plugin.modules.recurrent.weights import Weights

# Types of products, in the names of compiled functions.
_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def can_scan(
    cell: Cell, weights: Weights, dtype: torch.dtype, num_sentences: Optional[int] = None
) -> bool:
    """
    True if the steps of this cell can be one compiled call.

    # Parameters

    cell : `Cell`
    weights : `Weights`
        All must be on a CPU and of type `dtype`.
    dtype : `torch.dtype`
        The type of products: float32, or bfloat16 if no gradients are tracked and the products are
        small; for large ones oneDNN is faster.
    num_sentences : `Optional[int]`
        The number of sentences of the batch; `None` if gradients are tracked.
    """
    parts = (weights.input, weights.recurrent, weights.projection)
    is_fast = dtype == torch.float32 or (
        dtype == torch.bfloat16 and num_sentences is not None and is_small(weights, num_sentences)
    )
    return (
        is_fast
        and all(part is None or part.dtype == dtype for part in parts)
        and cell.kernel is not None
        # The weight of a packed `Int8Linear` is on the device `meta`.
        and weights.recurrent.device.type == "cpu"
        and compiled_kernels() is not None
    )


def is_small(weights: Weights, num_sentences: int) -> bool:
    """True if the recurrent product of a step is too small to gain from oneDNN in bfloat16."""
    return num_sentences * weights.recurrent.numel() <= tuning.MAX_COMPILED_BFLOAT16


def compiled_forward(
    cell: Cell,
    calls: Sequence[LayerCall],
    batch_sizes: Sequence[int],
    saved: Optional[Sequence[SavedActivations]] = None,
) -> List[Tuple[torch.Tensor, RecurrentState]]:
    """
    `forward_scan` of layers of the same widths, for sentences of the same lengths: in parallel if
    there are threads for it. The results of a sentence do not depend on the other sentences.
    """
    dim, rows = calls[0].weights.hidden_dim(cell), max(batch_sizes, default=0)
    dtype = calls[0].inputs.dtype
    scans, results = [], []
    for number, (inputs, weights, state, layers) in enumerate(calls):
        activations = saved[number] if saved else None
        outputs = outputs_of(inputs, weights, activations)
        full = torch.promote_types(outputs.dtype, torch.float32)
        final = RecurrentState(
            outputs.new_zeros(rows, weights.output_dim), outputs.new_zeros(rows, dim, dtype=full)
        )
        if state is not None:
            hidden, cell_state = state
            final = RecurrentState(dense_copy(hidden, outputs.dtype), dense_copy(cell_state, full))
        cell_outputs = None
        if weights.projection is not None:
            cell_outputs = activations.cell_outputs if activations else outputs.new_empty(rows, dim)
        scans.append(
            {
                **_settings(cell, weights, len(final.cell), state is not None),
                **weights.panels(cell, layers),
                "input_dim": inputs.size(1),
                "inputs": inputs.contiguous(),
                "bias": weights.bias.to(full),
                "hidden": final.hidden,
                "cell_state": final.cell,
                "outputs": outputs,
                "gates": activations and activations.gates,
                "cell_states": activations and activations.cell_states,
                "cell_outputs": cell_outputs,
            }
        )
        results.append((outputs, final))
    _run(f"{cell.kernel}_forward_scan_{_NAMES[dtype]}", _ForwardScan, scans, batch_sizes)
    return [
        (outputs, RecurrentState(final.hidden, final.cell.to(dtype))) for outputs, final in results
    ]


def compiled_backward(
    cell: Cell,
    weights: Weights,
    batch_sizes: List[int],
    state: Optional[RecurrentState],
    activations: SavedActivations,
    gradients: Tuple[torch.Tensor, ...],
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
) -> RecurrentState:
    """See `backward_scan`."""
    d_outputs, d_hidden, d_cell = (dense_copy(gradient, torch.float32) for gradient in gradients)
    projection = weights.projection
    scan = {
        **_settings(cell, weights, len(d_cell), state is not None),
        "gates": activations.gates,
        "cell_states": activations.cell_states,
        "first_cell_state": (
            torch.zeros_like(d_cell) if state is None else dense_copy(state.cell, torch.float32)
        ),
        "hidden_states": activations.hidden_states,
        "d_outputs": d_outputs,
        "recurrent": panels(weights.recurrent.t()),
        "projection": None if projection is None else panels(projection.t()),
        "d_hidden": d_hidden,
        "d_cell_state": d_cell,
        "d_gates": d_gates,
        "d_projected": d_projected,
    }
    _run(f"{cell.kernel}_backward_scan", _BackwardScan, [scan], batch_sizes)
    return RecurrentState(d_hidden, d_cell)


def _settings(cell: Cell, weights: Weights, rows: int, has_state: bool) -> Dict[str, Any]:
    dim = weights.hidden_dim(cell)
    setting = cell.kernel_setting(rows, dim)
    is_mask = isinstance(setting, torch.Tensor)
    return {
        "hidden_dim": dim,
        "output_dim": weights.output_dim,
        "has_state": int(has_state),
        "cell_clip": inf if is_mask else setting,
        "projection_clip": cell.projection_clip or inf,
        "dropout_mask": setting if is_mask else None,
    }


_SETTINGS: Any = [
    ("num_steps", c_int64),
    ("batch_sizes", c_void_p),
    ("hidden_dim", c_int64),
    ("output_dim", c_int64),
    ("has_state", c_int64),
    ("cell_clip", c_float),
    ("projection_clip", c_float),
    ("dropout_mask", c_void_p),
]


def _pointers(names: str) -> Any:
    return [(name, c_void_p) for name in names.split()]


class _ForwardScan(Structure):
    """The structure of `kernels/scan.h` and `kernels/forward_scan.cpp`."""

    _fields_ = [
        *_SETTINGS,
        ("input_dim", c_int64),
        *_pointers(
            "inputs bias input recurrent projection hidden cell_state outputs gates cell_states"
            " cell_outputs"
        ),
    ]


class _BackwardScan(Structure):
    """The structure of `kernels/scan.h` and `kernels/backward_scan.cpp`."""

    _fields_ = [
        *_SETTINGS,
        *_pointers(
            "gates cell_states first_cell_state hidden_states d_outputs recurrent projection"
            " d_hidden d_cell_state d_gates d_projected"
        ),
    ]


def _run(
    name: str, structure: Any, scans: Sequence[Dict[str, Any]], batch_sizes: Sequence[int]
) -> None:
    sizes = (c_int64 * len(batch_sizes))(*batch_sizes)
    arguments = (structure * len(scans))()
    for argument, scan in zip(arguments, scans):
        argument.num_steps, argument.batch_sizes = len(sizes), addressof(sizes)
        for field, value in scan.items():
            if isinstance(value, torch.Tensor):
                # The compiled code checks nothing.
                assert value.device.type == "cpu" and value.is_contiguous(), field
                assert value.dtype in _NAMES, field
                value = value.data_ptr()
            setattr(argument, field, value)
    getattr(compiled_kernels(), name)(arguments, c_int64(len(scans)))
