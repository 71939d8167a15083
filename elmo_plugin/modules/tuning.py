"""
Sizes at which a computation switches to another algorithm or layout. They change speed and memory,
and results only by rounding. The benchmark named beside each chose it (`benchmarks/README.md`).
"""

# Rows of a product are padded to a multiple of this or of a larger power of two, see
# `packed_linear.py`: `benchmarks/embed.py` and `benchmarks/pretrain.py`, float32 and bfloat16.
ROW_MULTIPLE = 4
# A float32 matrix of at most `SMALL_MATRIX` elements is multiplied faster as a transposed copy than
# in oneDNN's layout. One of at most `SMALL_MATRIX_FOR_ONE_ROW` is multiplied faster with a single
# row as it is: `benchmarks/latency.py`, small and full.
SMALL_MATRIX = 192 * 1024
SMALL_MATRIX_FOR_ONE_ROW = 512 * 1024
# The inputs of several steps are multiplied in one product whose result has at most this many
# elements: 4 MB in float32, which stay in the cache until the steps read them.
# `benchmarks/embed.py`, batch 64.
MAX_INPUT_GATES = 1024 * 1024
# If the recurrent product of a step takes at most this many multiplications, over all sentences,
# then all steps in bfloat16 are one compiled call (`benchmarks/latency.py` and
# `benchmarks/embed.py`, bfloat16), and the steps of a training run under `torch.autocast` stay in
# float32 (`benchmarks/tasks.py`, mixed precision).
MAX_COMPILED_BFLOAT16 = 10 * 1024 * 1024
# The same measure in float32 on processors of Intel and AMD without AVX-512, where oneDNN is faster
# above it; on others the compiled call is. Measured in turns with `Loop`, layers of the three sizes
# of biLMs, 8 to 1,024 sentences, limited by `ONEDNN_MAX_CPU_ISA=AVX2 CXX="c++ -march=haswell"`.
MAX_COMPILED_AVX2 = 64 * 1024 * 1024
# A buffer of at least this many bytes is allocated by NumPy, which asks for large pages:
# `benchmarks/srl_encoder.py` and `benchmarks/pretrain.py`.
LARGE_BUFFER = 4 * 1024 * 1024
# Maximum number of character windows in one product of a convolution (16 MB per thousand filters),
# and the number above which a product may end: `benchmarks/memory.py` and `benchmarks/embed.py`.
MAX_WINDOWS = 4096
MIN_WINDOWS = 128
# On a GPU, the inputs of several steps are multiplied in one product with at most this many
# elements, 512 MB in bfloat16. At most `MAX_GRAPHS` CUDA graphs are kept, each with buffers for one
# number of sentences: `benchmarks/layers.py --device cuda`.
MAX_GPU_INPUT_GATES = 256 * 1024 * 1024
MAX_GRAPHS = 64
