"""
Triton kernels for the steps of an LSTM layer, between their matrix products.

A kernel reads from device memory which step it computes, so that one CUDA graph of its launches
serves sentences of all lengths. Each program computes `BLOCK` units of one sentence, in float32. A
sentence that has ended does not change.

- `schedule` has a row for each step: the first packed token and the number of sentences. In the
  backward pass there follow the first packed token of the step before (-1 at the first step) and
  the number of sentences of the step after (0 at the last step).
- `counter` is the first step of the graph, `offset` the place of the launch in it.
- `addresses` are the addresses of tensors that are new in each call.
"""

import triton
import triton.language as tl


@triton.jit
def _tanh(values):
    # Near 0 the difference would lose digits; there the series has an error below 1e-8.
    square = values * values
    near = 17.0 / 315.0 - square * (62.0 / 2835.0)
    near = values * (1.0 - square * (1.0 / 3.0 - square * (2.0 / 15.0 - square * near)))
    return tl.where(square < 0.01, near, 2.0 * tl.sigmoid(2.0 * values) - 1.0)


@triton.jit
def _clipped(values, clip):
    # NaN stays NaN.
    values = tl.where(values > clip, clip, values)
    return tl.where(values < -clip, -clip, values)


@triton.jit
def _load(pointer, mask):
    return tl.load(pointer, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _store(pointer, values, mask):
    tl.store(pointer, values.to(pointer.dtype.element_ty), mask=mask)


@triton.jit
def _at(addresses, number, like):
    """A pointer to the type of another pointer's values; the address is a multiple of 16."""
    address = tl.multiple_of(tl.load(addresses + number), 16)
    return address.to(tl.pointer_type(like.dtype.element_ty))


@triton.jit(do_not_specialize=["offset"])
def forward_cell(
    addresses, schedule, counter, offset, recurrent, cell_state, output, clip, dim,
    KEEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """
    Computes the cell: replaces `cell_state` and `output`, both `(num_rows, dim)`. Reads the
    products with the inputs, `addresses[0]`, `(num_packed, 4 * dim)`, and with the hidden state,
    `recurrent`, `(num_rows, 4 * dim)`. If `KEEPS`, fills `addresses[2:]` for the backward pass:
    pre-activation gates, `(num_packed, 4 * dim)`, cell states and outputs of the cell, both
    `(num_packed, dim)`.
    """
    step = schedule + 2 * (tl.load(counter) + offset)
    row = tl.program_id(0).to(tl.int64)
    if row < tl.load(step + 1):
        token = tl.load(step) + row
        unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        mask = unit < dim
        of_token = token * 4 * dim + unit
        inputs = _at(addresses, 0, output) + of_token
        sums = recurrent + row * 4 * dim + unit
        i = _load(inputs, mask) + _load(sums, mask)
        f = _load(inputs + dim, mask) + _load(sums + dim, mask)
        g = _load(inputs + 2 * dim, mask) + _load(sums + 2 * dim, mask)
        o = _load(inputs + 3 * dim, mask) + _load(sums + 3 * dim, mask)
        state = cell_state + row * dim + unit
        c = _clipped(tl.sigmoid(f) * _load(state, mask) + tl.sigmoid(i) * _tanh(g), clip)
        result = tl.sigmoid(o) * _tanh(c)
        _store(state, c, mask)
        _store(output + row * dim + unit, result, mask)
        if KEEPS:
            gates = _at(addresses, 2, output) + of_token
            _store(gates, i, mask)
            _store(gates + dim, f, mask)
            _store(gates + 2 * dim, g, mask)
            _store(gates + 3 * dim, o, mask)
            _store(_at(addresses, 3, cell_state) + token * dim + unit, c, mask)
            _store(_at(addresses, 4, output) + token * dim + unit, result, mask)


@triton.jit(do_not_specialize=["offset"])
def forward_hidden(
    addresses, schedule, counter, offset, projected, hidden, clip, dim, BLOCK: tl.constexpr
):
    """
    Clips the projection's output, `projected`, into `hidden`, both `(num_rows, dim)`, and into the
    layer's result, `addresses[1]`, `(num_packed, dim)`.
    """
    step = schedule + 2 * (tl.load(counter) + offset)
    row = tl.program_id(0).to(tl.int64)
    if row < tl.load(step + 1):
        unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        mask = unit < dim
        values = _clipped(_load(projected + row * dim + unit, mask), clip)
        _store(hidden + row * dim + unit, values, mask)
        outputs = _at(addresses, 1, hidden) + (tl.load(step) + row) * dim + unit
        _store(outputs, values, mask)


@triton.jit(do_not_specialize=["offset"])
def backward_hidden(
    addresses, schedule, counter, offset, through_recurrent, d_projected, clip, dim,
    PROJECTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """
    Fills `d_projected`, `(num_rows, dim)`: the gradient of the result, `addresses[0]`, plus the
    hidden state's. The latter is `through_recurrent` from the step after, or `addresses[1]` in a
    sentence's last step, both `(num_rows, dim)`. If `PROJECTS`, the sum is zero where the result,
    `addresses[2]`, was clipped, and is kept in `addresses[3]`. Other addresses are
    `(num_packed, dim)`.
    """
    step = schedule + 4 * (tl.load(counter) + offset)
    row = tl.program_id(0).to(tl.int64)
    if row < tl.load(step + 1):
        unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        mask = unit < dim
        of_row = row * dim + unit
        of_token = (tl.load(step) + row) * dim + unit
        values = _load(_at(addresses, 0, d_projected) + of_token, mask)
        if row < tl.load(step + 3):
            values += _load(through_recurrent + of_row, mask)
        else:
            values += _load(_at(addresses, 1, d_projected) + of_row, mask)
        if PROJECTS:
            results = tl.abs(_load(_at(addresses, 2, d_projected) + of_token, mask))
            values = tl.where(results >= clip, 0.0, values)
            _store(_at(addresses, 3, d_projected) + of_token, values, mask)
        _store(d_projected + of_row, values, mask)


@triton.jit(do_not_specialize=["offset"])
def backward_cell(
    addresses, schedule, counter, offset, d_output, d_cell_state, d_gates, clip, dim,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """
    Fills `d_gates`, `(num_rows, 4 * dim)`, from the gradients of the cell's output and state,
    `d_output` and `d_cell_state`, both `(num_rows, dim)`. Turns `d_cell_state` into the previous
    cell state's gradient. `addresses[4:]` are pre-activation gates, `(num_packed, 4 * dim)`; cell
    states, `(num_packed, dim)`; cell states before the first step, `(num_rows, dim)`; and gradients
    of gates, `(num_packed, 4 * dim)`.
    """
    step = schedule + 4 * (tl.load(counter) + offset)
    row = tl.program_id(0).to(tl.int64)
    if row < tl.load(step + 1):
        unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        mask = unit < dim
        token = tl.load(step) + row
        before = tl.load(step + 2)
        gates = _at(addresses, 4, d_gates) + token * 4 * dim + unit
        i = tl.sigmoid(_load(gates, mask))
        f = tl.sigmoid(_load(gates + dim, mask))
        g = _tanh(_load(gates + 2 * dim, mask))
        o = tl.sigmoid(_load(gates + 3 * dim, mask))
        cell_states = _at(addresses, 5, d_cell_state) + unit
        c = _load(cell_states + token * dim, mask)
        if before < 0:
            previous = _load(_at(addresses, 6, d_cell_state) + row * dim + unit, mask)
        else:
            previous = _load(cell_states + (before + row) * dim, mask)
        t = _tanh(c)
        d_state = d_cell_state + row * dim + unit
        d = _load(d_output + row * dim + unit, mask)
        d_c = _load(d_state, mask) + d * o * (1.0 - t * t)
        d_c = tl.where(tl.abs(c) >= clip, 0.0, d_c)
        _store(d_state, d_c * f, mask)
        d_i = d_c * g * i * (1.0 - i)
        d_f = d_c * previous * f * (1.0 - f)
        d_g = d_c * i * (1.0 - g * g)
        d_o = d * t * o * (1.0 - o)
        of_row = d_gates + row * 4 * dim + unit
        kept = _at(addresses, 7, d_gates) + token * 4 * dim + unit
        _store(of_row, d_i, mask)
        _store(of_row + dim, d_f, mask)
        _store(of_row + 2 * dim, d_g, mask)
        _store(of_row + 3 * dim, d_o, mask)
        _store(kept, d_i, mask)
        _store(kept + dim, d_f, mask)
        _store(kept + 2 * dim, d_g, mask)
        _store(kept + 3 * dim, d_o, mask)
