"""The softmax of logits on a GPU, as a Triton kernel; `softmax.cpp` is the same on a CPU."""

import triton
import triton.language as tl


@triton.jit
def softmax_rows(
    num_columns, bias, targets, logits, losses, DIFFERENTIATES: tl.constexpr, BLOCK: tl.constexpr
):
    """
    Stores the loss of each row of `logits`, `(num_predictions, num_columns)`, plus `bias`, for its
    word in `targets`, in float32. If `DIFFERENTIATES`, the loss's gradient replaces the logits.
    """
    # Products with the number of columns may have more than 32 bits.
    row = tl.program_id(0).to(tl.int64)
    of_row = logits + row * num_columns
    target = tl.load(targets + row)
    column = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, num_columns, BLOCK):
        word = first + column
        mask = word < num_columns
        score = tl.load(of_row + word, mask=mask, other=float("-inf")).to(tl.float32)
        score += tl.load(bias + word, mask=mask, other=0.0)
        # `maximum` of NaN may be the other number; the sum is NaN all the same.
        higher = tl.maximum(largest, score)
        # 0 instead of NaN where all scores up to here are minus infinity.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(largest - shift) + tl.exp(score - shift)
        largest = higher
    top = tl.max(largest, axis=0)
    log_total = top + tl.log(tl.sum(total * tl.exp(largest - top), axis=0))
    of_target = tl.load(of_row + target).to(tl.float32) + tl.load(bias + target)
    tl.store(losses + row, log_total - of_target)
    if DIFFERENTIATES:
        for first in range(0, num_columns, BLOCK):
            word = first + column
            mask = word < num_columns
            score = tl.load(of_row + word, mask=mask, other=0.0).to(tl.float32)
            score += tl.load(bias + word, mask=mask, other=0.0)
            gradient = tl.exp(score - log_total) - tl.where(word == target, 1.0, 0.0)
            tl.store(of_row + word, gradient.to(logits.dtype.element_ty), mask=mask)


@triton.jit
def add_one(values):
    """Adds 1 to the first of `values`: where it runs, Triton can compile the other kernels."""
    tl.store(values, (tl.load(values).to(tl.float32) + 1.0).to(values.dtype.element_ty))
