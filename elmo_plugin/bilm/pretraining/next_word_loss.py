"""The loss of the next word, for the vocabulary of a language model or a sample of it."""

import math
from typing import Any, List, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, linear, pad

from elmo_plugin.modules.kernels.compiled import call_kernel, compiled_kernels
from elmo_plugin.modules.kernels.gpu import has_triton, kernels
from elmo_plugin.modules.packed_linear import (
    column_sums,
    onednn_compiles,
    padded_rows,
    transposed_product,
    with_rows,
)

# Logits that exist at once: 32 MB in float32, more only above 131,072 words.
_MAX_LOGITS = 2**23
_MIN_ROWS = 64
# With the kernel for GPUs, larger products are faster: 512 MB of logits in bfloat16.
_MAX_GPU_LOGITS = 2**28
# Logits that a program of that kernel reads at once.
_ROW_BLOCK = 2048
# Logits of more rows would leave the CPU's cache between two passes over them.
_MAX_ROWS = 1024


def next_word_loss(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """
    Summed cross-entropy of `hidden @ weight.t() + bias` in nats. The forward pass also computes the
    gradients, in chunks of about eight million logits (on a GPU with Triton, 270 million), to save
    memory. Matrix products follow `torch.autocast`.

    Shapes: `hidden` `(num_predictions, dim)`, `weight` `(num_words, dim)`, `bias` `(num_words,)`,
    `targets` (rows of `weight`) `(num_predictions,)`.
    """
    return _NextWordLoss.apply(hidden, weight, bias, targets, torch.is_grad_enabled())


@torch.no_grad()
def next_word_losses(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """`next_word_loss` of each row of `hidden`, without gradients: shape `(num_predictions,)`."""
    losses = bias.new_empty(len(hidden))
    num_words = len(weight)
    hidden, padded_weight, bias = _for_products(hidden, weight, bias)
    # Shape: (largest chunk, num_words). A buffer for each chunk would cost as much as a product.
    buffer = hidden.new_empty(
        min(len(hidden), _chunk_size(hidden.device, num_words)), len(padded_weight)
    )
    for rows in _chunks(hidden, num_words):
        chunk = hidden[rows]
        logits = buffer[: len(chunk)]
        torch.mm(chunk, padded_weight.t(), out=logits)
        losses[rows] = _losses(logits, bias, targets[rows])
    return losses


class _NextWordLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        targets: torch.Tensor,
        requires_grad: bool,
    ) -> torch.Tensor:
        """See `next_word_loss`; gradients are computed here if `requires_grad`."""
        if not requires_grad:
            return next_word_losses(hidden, weight, bias, targets).sum()
        num_words = len(weight)
        cast_hidden, padded_weight, padded_bias = _for_products(hidden, weight, bias)
        loss = bias.new_zeros(())
        d_hidden, d_weight = torch.empty_like(cast_hidden), torch.zeros_like(weight)
        d_bias = torch.zeros_like(bias)
        for rows in _chunks(hidden, num_words):
            size = len(targets[rows])
            chunk = cast_hidden[rows]
            if onednn_compiles(chunk):
                chunk = with_rows(chunk, padded_rows(size))
            logits = linear(chunk, padded_weight)
            logits[size:] = 0.0
            loss += _differentiate(logits[:size], padded_bias, targets[rows])
            d_hidden[rows] = (logits @ padded_weight)[:size]
            d_weight += transposed_product(logits, chunk)[:num_words]
            d_bias += column_sums(logits)[:num_words]
        ctx.save_for_backward(d_hidden, d_weight, d_bias)
        ctx.dtype = hidden.dtype
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        return (d_hidden * d_loss).to(ctx.dtype), d_weight * d_loss, d_bias * d_loss, None, None


def _for_products(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Converts to the type of `torch.autocast`, and pads the words so that products are fast."""
    device, num_words = hidden.device.type, len(weight)
    dtype = hidden.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    hidden, weight = hidden.to(dtype), weight.to(dtype)
    size = num_words
    if onednn_compiles(hidden):
        size = padded_rows(num_words)
    elif device == "cuda":
        # Products with rows that do not begin at a multiple of 16 bytes are several times slower.
        size = -(-num_words // 8) * 8
    if size > num_words:
        # The additional words have probability 0.
        weight = with_rows(weight, size)
        bias = pad(bias, (0, len(weight) - num_words), value=-math.inf)
    return hidden, weight, bias


def _chunks(hidden: torch.Tensor, num_words: int) -> List[slice]:
    size = _chunk_size(hidden.device, num_words)
    return [slice(first, first + size) for first in range(0, len(hidden), size)]


def _chunk_size(device: torch.device, num_words: int) -> int:
    if device.type == "cuda" and has_triton(device):
        return max(_MIN_ROWS, _MAX_GPU_LOGITS // num_words)
    return min(_MAX_ROWS, max(_MIN_ROWS, _MAX_LOGITS // num_words))


def _losses(logits: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The loss of each row of logits, of shape `(num_predictions, num_words)`, without `bias`."""
    losses = _run_kernel("softmax_losses", bias, targets, logits)
    if losses is not None:
        return losses
    return cross_entropy(logits.to(bias.dtype).add_(bias), targets, reduction="none")


def _differentiate(logits: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The sum of `_losses`; replaces the logits by the gradient of the loss."""
    losses = _run_kernel("softmax_gradient", bias, targets, logits)
    if losses is not None:
        return losses.sum()
    target = targets.unsqueeze(1)
    # Shape: (num_predictions, num_words)
    log_probabilities = torch.log_softmax(logits.to(bias.dtype).add_(bias), dim=1)
    log_likelihood = log_probabilities.gather(1, target)
    logits.copy_(log_probabilities.exp_().scatter_(1, target, log_likelihood.exp() - 1.0))
    return -log_likelihood.sum()


def _run_kernel(
    name: str, bias: torch.Tensor, targets: torch.Tensor, logits: torch.Tensor
) -> Optional[torch.Tensor]:
    """The losses that a compiled kernel computes, or `None` if there is none for these logits."""
    if logits.device.type == "cuda":
        return _run_rows(name == "softmax_gradient", bias, targets, logits)
    dtype = {torch.float32: "float32", torch.bfloat16: "bfloat16"}.get(logits.dtype)
    is_float32 = bias.dtype == torch.float32 and logits.device.type == "cpu"
    if compiled_kernels() is None or dtype is None or not is_float32:
        return None
    losses = bias.new_empty(len(logits))
    tensors = bias.contiguous(), targets.contiguous(), logits, losses
    call_kernel(f"{name}_{dtype}", *logits.shape, *tensors)
    return losses


def _run_rows(
    differentiates: bool, bias: torch.Tensor, targets: torch.Tensor, logits: torch.Tensor
) -> Optional[torch.Tensor]:
    """`_run_kernel` on a GPU."""
    supported = bias.dtype == torch.float32 and logits.dtype != torch.float64
    if not supported or not has_triton(logits.device):
        return None
    # The kernel writes to them.
    assert logits.is_contiguous()
    losses = bias.new_empty(len(logits))
    if len(logits):
        tensors = bias.contiguous(), targets.contiguous(), logits, losses
        with torch.cuda.device_of(logits):
            kernels("softmax_rows").softmax_rows[len(logits),](
                logits.size(1), *tensors,
                DIFFERENTIATES=differentiates, BLOCK=_ROW_BLOCK, enable_fp_fusion=True,
            )  # fmt: skip
    return losses
