"""
Triton kernels for convolutions over the characters of words: each filter's maximum over positions,
and its gradient. `character_convolution.cpp` is the same on a CPU.

`ids` is `(num_words, longest)`, `products` `(num_characters, WIDTH, num_filters)`. `maxima` and
`argmax` are columns of matrices with `total` columns. Each program computes `BLOCK` filters of one
word, in float32.
"""

import triton
import triton.language as tl


@triton.jit
def character_maxima(
    ids, lengths, products, maxima, argmax, longest, num_characters, num_filters, total,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Stores each filter's maximum and its position; `lengths` counts ids before padding."""
    word = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = unit < num_filters
    windows = tl.minimum(tl.load(lengths + word).to(tl.int32) + 1, longest - WIDTH + 1)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    position = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, windows):
        sums = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(WIDTH):
            character = tl.load(ids + word * longest + start + k)
            # A number, because Triton 3.9's interpreter does not combine a mask with a scalar.
            num_known = tl.where((character >= 0) & (character < num_characters), num_filters, 0)
            row = products + (character * WIDTH + k) * num_filters + unit
            sums += tl.load(row, mask=unit < num_known, other=float("nan")).to(tl.float32)
        # NaN is larger than all, as in PyTorch.
        is_more = (sums > best) | (sums != sums)
        best = tl.where(is_more, sums, best)
        position = tl.where(is_more, start, position)
    place = word * total + unit
    tl.store(maxima + place, best.to(maxima.dtype.element_ty), mask=mask)
    tl.store(argmax + place, position, mask=mask)


@triton.jit
def character_maxima_gradient(
    ids, argmax, d_maxima, d_products, scale, longest, num_characters, num_filters, total,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds gradients times `scale` to `d_products`, as integers: their sums need no fixed order."""
    word = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = unit < num_filters
    place = word * total + unit
    d = tl.load(d_maxima + place, mask=mask, other=0.0).to(tl.float64) * tl.load(scale)
    position = tl.load(argmax + place, mask=mask, other=0)
    # Behind a ReLU half of the gradients are zero.
    mask = mask & (d != 0.0)
    for k in tl.static_range(WIDTH):
        character = tl.load(ids + word * longest + position + k, mask=mask, other=0)
        is_known = (character >= 0) & (character < num_characters)
        row = d_products + (character * WIDTH + k) * num_filters + unit
        tl.atomic_add(row, d.to(tl.int64), mask=mask & is_known, sem="relaxed")
