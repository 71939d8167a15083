from ctypes import Structure, addressof, c_float, c_int64, c_void_p
from math import inf
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch.nn.functional import pad

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.modules.linear.packed import PackedLinear
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


class CompiledScan(Backend):
    """Runs all steps in one compiled call. A sentence's results do not depend on the others."""

    device = "cpu"
    follows_autocast = False

    def can_run(self, run: Run, dtype: torch.dtype, has_gradients: bool) -> bool:
        """
        True for cells with a kernel: in float32, also under autocast if products are small; in
        bfloat16 if they are small and without gradients. For large ones oneDNN is faster.
        """
        weights = run.calls[0].weights
        full = weights.bias.dtype
        is_small = run.num_sentences * weights.recurrent.numel() <= tuning.MAX_COMPILED_BFLOAT16
        if full == torch.float32:
            is_fast = is_small or dtype == full
        else:
            is_fast = is_small and dtype == full == torch.bfloat16 and not has_gradients
        parts = (weights.input, weights.recurrent, weights.projection)
        return (
            is_fast
            and all(part is None or part.dtype == full for part in parts)
            and run.cell.kernel is not None
            and compiled_kernels() is not None
        )

    def forward(self, run: Run, saved: Optional[Sequence[SavedActivations]] = None) -> List[Result]:
        activations: Sequence[Optional[SavedActivations]] = saved or [None] * len(run.calls)
        scans, results = zip(*(_forward(run, *each) for each in zip(run.calls, activations)))
        dtype = run.calls[0].inputs.dtype
        _call(f"forward_scan_{_NAMES[dtype]}", _ForwardScan, scans, run)
        return [
            (outputs, RecurrentState(final.hidden, final.cell.to(dtype)))
            for outputs, final in results
        ]

    def backward(self, run: Run, saved: SavedActivations, d: Gradients) -> RecurrentState:
        ((_, weights, state, _),) = run.calls
        d_outputs, d_hidden, d_cell = (dense_copy(each, torch.float32) for each in d[:3])
        projection = weights.projection
        scan = {
            **_settings(run, weights, len(d_cell), state is not None),
            "gates": saved.gates,
            "cell_states": saved.cell_states,
            "first_cell_state": (
                torch.zeros_like(d_cell) if state is None else dense_copy(state.cell, torch.float32)
            ),
            "hidden_states": saved.hidden_states,
            "d_outputs": d_outputs,
            "recurrent": panels(weights.recurrent.t()),
            "projection": None if projection is None else panels(projection.t()),
            "d_hidden": d_hidden,
            "d_cell_state": d_cell,
            "d_gates": d.gates,
            "d_projected": d.projected,
        }
        _call("backward_scan", _BackwardScan, [scan], run)
        return RecurrentState(d_hidden, d_cell)


def _forward(
    run: Run, call: LayerCall, saved: Optional[SavedActivations]
) -> Tuple[Dict[str, Any], Result]:
    """What the compiled code reads and fills, and the tensors for the results."""
    (inputs, weights, state, _), rows = call, run.num_sentences
    outputs, dim = outputs_of(call, saved), weights.hidden_dim(run.cell)
    full = torch.promote_types(outputs.dtype, torch.float32)
    if state is None:
        final = RecurrentState(
            outputs.new_zeros(rows, weights.output_dim), outputs.new_zeros(rows, dim, dtype=full)
        )
    else:
        final = RecurrentState(
            dense_copy(state.hidden, outputs.dtype), dense_copy(state.cell, full)
        )
    input_layer, recurrent_layer, projection_layer = call.layers or (None, None, None)
    cell_outputs = None
    if weights.projection is not None:
        cell_outputs = saved.cell_outputs if saved else outputs.new_empty(rows, dim)
    scan = {
        **_settings(run, weights, len(final.cell), state is not None),
        "input": _panels(weights.input, input_layer, run.cell.num_input_gates),
        "recurrent": _panels(weights.recurrent, recurrent_layer, run.cell.num_recurrent_gates),
        "projection": _panels(weights.projection, projection_layer),
        "input_dim": inputs.size(1),
        "inputs": inputs.contiguous(),
        "bias": weights.bias.to(full),
        "hidden": final.hidden,
        "cell_state": final.cell,
        "outputs": outputs,
        "gates": saved and saved.gates,
        "cell_states": saved and saved.cell_states,
        "cell_outputs": cell_outputs,
    }
    return scan, (outputs, final)


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
        # Shape: (num_panels, 4, width, in_features)
        parts = pad(weight, (0, 0, 0, -len(weight) % (_PLAIN * width)))
        parts = parts.unflatten(0, (-1, _PLAIN, width))
        return parts.permute(0, 3, 1, 2).contiguous().view(dtype)
    # Shape: (num_gates, hidden_dim, in_features)
    gates = weight.unflatten(0, (num_gates, -1))
    # Shape: (num_gates, num_panels, width, in_features)
    parts = pad(gates, (0, 0, 0, -gates.size(1) % width)).unflatten(1, (-1, width))
    return parts.permute(1, 3, 0, 2).contiguous().view(dtype)


def _settings(run: Run, weights: Weights, rows: int, has_state: bool) -> Dict[str, Any]:
    dim = weights.hidden_dim(run.cell)
    setting = run.cell.kernel_setting(rows, dim)
    is_mask = isinstance(setting, torch.Tensor)
    return {
        "hidden_dim": dim,
        "output_dim": weights.output_dim,
        "has_state": int(has_state),
        "cell_clip": inf if is_mask else setting,
        "projection_clip": run.cell.projection_clip or inf,
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
    """The fields of `kernels/scan.h` and `kernels/forward_scan.cpp`, in their order."""

    _fields_ = [
        *_SETTINGS,
        ("input_dim", c_int64),
        *_pointers(
            "inputs bias input recurrent projection hidden cell_state outputs gates cell_states"
            " cell_outputs"
        ),
    ]


class _BackwardScan(Structure):
    """The fields of `kernels/scan.h` and `kernels/backward_scan.cpp`, in their order."""

    _fields_ = [
        *_SETTINGS,
        *_pointers(
            "gates cell_states first_cell_state hidden_states d_outputs recurrent projection"
            " d_hidden d_cell_state d_gates d_projected"
        ),
    ]


def _call(name: str, structure: Any, scans: Sequence[Dict[str, Any]], run: Run) -> None:
    sizes = (c_int64 * len(run.batch_sizes))(*run.batch_sizes)
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
    getattr(compiled_kernels(), f"{run.cell.kernel}_{name}")(arguments, c_int64(len(scans)))
