"""A kernel that does nothing of use: where it runs, Triton can compile the others."""

import triton
import triton.language as tl


@triton.jit
def add_one(values):
    """Adds 1 to the first of `values`."""
    tl.store(values, (tl.load(values).to(tl.float32) + 1.0).to(values.dtype.element_ty))
