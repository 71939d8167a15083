import struct
from array import array
from ctypes import c_int64
from itertools import repeat
from math import inf
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.nn.functional import pad

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.modules.packed_linear import PackedLinear
from elmo_plugin.modules.recurrent.cells import Weights
from elmo_plugin.modules.recurrent.scan import (
    Backend,
    Gradients,
    LayerCall,
    RecurrentState,
    Result,
    Run,
    SavedActivations,
    dense_copy,
    outputs_of,
)

# Names of the products' types in compiled functions.
_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}
# Vectors per panel of a weight without gates.
_PLAIN = 4
# The width of panels on processors of Intel and AMD without AVX-512.
_AVX2 = 8


class CompiledScan(Backend):
    """Runs all steps in one compiled call. A sentence's results do not depend on the others."""

    device = "cpu"
    follows_autocast = False

    def can_run(self, run: Run, dtype: torch.dtype, has_gradients: bool) -> bool:
        """
        True for cells with a kernel: in float32, also under autocast if products are small; in
        bfloat16 if they are small and without gradients. For large ones oneDNN is faster, without
        AVX-512 also in float32.
        """
        weights = run.calls[0].weights
        full = weights.bias.dtype
        work = run.num_sentences * weights.recurrent.numel()
        is_small = work <= tuning.MAX_COMPILED_BFLOAT16
        if full == torch.float32:
            is_fast = is_small or dtype == full
        else:
            is_fast = is_small and dtype == full == torch.bfloat16 and not has_gradients
        parts = (weights.input, weights.recurrent, weights.projection)
        types_fit = all(part is None or part.dtype == full for part in parts)
        if not (is_fast and types_fit and run.cell.kernel is not None):
            return False
        kernels = compiled_kernels()
        return kernels is not None and (
            work <= tuning.MAX_COMPILED_AVX2 or kernels.panel_width() != _AVX2
        )

    def forward(self, run: Run, saved: Optional[Sequence[SavedActivations]] = None) -> List[Result]:
        pairs = zip(run.calls, saved or repeat(None))
        scans, results = zip(*(_forward(run, *each) for each in pairs))
        dtype = run.calls[0].inputs.dtype
        _call(f"forward_scan_{_NAMES[dtype]}", scans, run)
        return [
            (outputs, RecurrentState(final.hidden, final.cell.to(dtype)))
            for outputs, final in results
        ]

    def backward(self, run: Run, saved: SavedActivations, d: Gradients) -> RecurrentState:
        ((_, weights, state, _),) = run.calls
        d_outputs, d_hidden, d_cell = (dense_copy(each, torch.float32) for each in d[:3])
        projection = weights.projection
        first_cell_state = torch.zeros_like(d_cell)
        if state is not None:
            first_cell_state = dense_copy(state.cell, torch.float32)
        # The fields of `kernels/scan.h` and `kernels/backward_scan.cpp`.
        scan = [
            *_settings(run, weights, len(d_cell), state is not None),
            *(saved.gates, saved.cell_states, first_cell_state, saved.hidden_states, d_outputs),
            panels(weights.recurrent.t()),
            None if projection is None else panels(projection.t()),
            *(d_hidden, d_cell, d.gates, d.projected),
        ]
        _call("backward_scan", [scan], run)
        return RecurrentState(d_hidden, d_cell)


def _forward(
    run: Run, call: LayerCall, saved: Optional[SavedActivations]
) -> Tuple[List[Any], Result]:
    """What the compiled code reads and fills, and the tensors for the results."""
    (inputs, weights, state, _), rows = call, run.num_sentences
    outputs, dim = outputs_of(call, saved), weights.hidden_dim(run.cell)
    full = torch.promote_types(outputs.dtype, torch.float32)
    if state is None:
        hidden = outputs.new_zeros(rows, weights.output_dim)
        cell_state = outputs.new_zeros(rows, dim, dtype=full)
    else:
        hidden, cell_state = dense_copy(state.hidden, outputs.dtype), dense_copy(state.cell, full)
    input_layer, recurrent_layer, projection_layer = call.layers or (None, None, None)
    cell_outputs = None
    if weights.projection is not None:
        cell_outputs = saved.cell_outputs if saved else outputs.new_empty(rows, dim)
    # The fields of `kernels/scan.h` and `kernels/forward_scan.cpp`.
    scan = [
        *_settings(run, weights, len(cell_state), state is not None),
        *(inputs.size(1), inputs.contiguous(), weights.bias.to(full)),
        _panels(weights.input, input_layer, run.cell.num_input_gates),
        _panels(weights.recurrent, recurrent_layer, run.cell.num_recurrent_gates),
        _panels(weights.projection, projection_layer),
        *(hidden, cell_state, outputs),
        *(saved[:2] if saved else (None, None)),
        cell_outputs,
    ]
    return scan, (outputs, RecurrentState(hidden, cell_state))


def _panels(
    weight: Optional[torch.Tensor], layer: Optional[PackedLinear], *num_gates: int
) -> Optional[torch.Tensor]:
    """`panels`, cached by the layer that owns the weight, if there is one."""
    if layer is not None:
        return layer.cached(panels, *num_gates)
    return None if weight is None else panels(weight, *num_gates)


def panels(weight: torch.Tensor, num_gates: Optional[int] = None) -> torch.Tensor:
    """
    Copies a weight, shape `(out_features, in_features)`, in the order of `kernels/products.h`. With
    `num_gates`, its rows are one gate after the other, and each panel has the same hidden units of
    all gates.

    The shape is `(num_panels, in_features, num_gates or 4, width)`, with zeros for missing columns.
    In bfloat16 inputs come in pairs: `(num_panels, in_features / 2, num_gates or 4, 2 * width)`.
    """
    kernels = compiled_kernels()
    assert kernels is not None
    width = kernels.panel_width()
    weight, dtype = weight.detach(), weight.dtype
    if dtype == torch.bfloat16:
        # Two inputs as one number.
        weight = pad(weight, (0, weight.size(1) % 2)).contiguous().view(torch.int32)
    if num_gates is None:
        parts = pad(weight, (0, 0, 0, -len(weight) % (_PLAIN * width)))
        parts = parts.unflatten(0, (-1, _PLAIN, width)).transpose(0, 1)
    else:
        # Shape: (num_gates, hidden_dim, in_features)
        gates = weight.unflatten(0, (num_gates, -1))
        parts = pad(gates, (0, 0, 0, -gates.size(1) % width)).unflatten(1, (-1, width))
    # Shape before: (num_gates or 4, num_panels, width, in_features)
    return parts.permute(1, 3, 0, 2).contiguous().view(dtype)


def _settings(run: Run, weights: Weights, rows: int, has_state: bool) -> List[Any]:
    dim = weights.hidden_dim(run.cell)
    setting = run.cell.kernel_setting(rows, dim)
    clip, mask = (inf, setting) if isinstance(setting, torch.Tensor) else (setting, None)
    return [dim, weights.output_dim, has_state, clip, run.cell.projection_clip or inf, mask]


def _call(name: str, scans: Sequence[List[Any]], run: Run) -> None:
    sizes = array("q", run.batch_sizes)
    start = [len(sizes), sizes.buffer_info()[0]]
    content = b"".join(_structure(start + scan) for scan in scans)
    getattr(compiled_kernels(), f"{run.cell.kernel}_{name}")(content, c_int64(len(scans)))


def _structure(values: List[Any]) -> bytes:
    """Numbers and the addresses of tensors as a C++ structure, whose fields have 8 bytes."""
    fields = []
    for value in values:
        if isinstance(value, torch.Tensor):
            # The compiled code checks nothing.
            assert value.device.type == "cpu" and value.is_contiguous(), value.stride()
            assert value.dtype in _NAMES, value.dtype
            value = value.data_ptr()
        fields.append(value or 0)
    # Only the clips are no integers.
    return struct.pack(f"5q2d{len(fields) - 7}q", *fields)
