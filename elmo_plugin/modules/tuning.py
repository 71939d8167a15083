"""
Sizes at which a computation switches to another algorithm or layout.

Each was chosen by the benchmark named beside it; `benchmarks/README.md` describes the rows. They
change speed and memory, and results only by rounding.
"""

# Rows of a product are padded to a multiple of this or of a larger power of two, see
# `linear/products.py`: `benchmarks/embed.py` and `benchmarks/pretrain.py`, float32 and bfloat16.
ROW_MULTIPLE = 4
# Int8 products of more rows are padded to a multiple of this: `benchmarks/embed.py`, int8.
INT8_ROW_MULTIPLE = 64
# Elements of a float32 matrix up to which a transposed copy beats oneDNN's layout; up to which, for
# a single row, a product with the matrix as it is does: `benchmarks/latency.py`, small and full.
SMALL_MATRIX = 192 * 1024
SMALL_MATRIX_FOR_ONE_ROW = 512 * 1024
# Gate values computed from the inputs in one product (4 MB in float32, so that they stay in the
# cache until their steps read them): `benchmarks/embed.py`, batch 64.
MAX_INPUT_GATES = 1024 * 1024
# Multiplications of a recurrent product, of all sentences, up to which all steps are one compiled
# call in bfloat16, too (`benchmarks/latency.py` and `benchmarks/embed.py`, bfloat16), and stay in
# float32 in training under `torch.autocast` (`benchmarks/tasks.py`, mixed precision).
MAX_COMPILED_BFLOAT16 = 10 * 1024 * 1024
# Bytes above which a buffer is allocated by NumPy, which asks for large pages:
# `benchmarks/srl_encoder.py` and `benchmarks/pretrain.py`.
LARGE_BUFFER = 4 * 1024 * 1024
# Maximum number of character windows in one product of a convolution (16 MB per thousand filters),
# and the number above which a product may end: `benchmarks/memory.py` and `benchmarks/embed.py`.
MAX_WINDOWS = 4096
MIN_WINDOWS = 128
# Words whose token layer `TokenLayerTable` computes at once: `benchmarks/memory.py`.
WORDS_AT_ONCE = 1024
