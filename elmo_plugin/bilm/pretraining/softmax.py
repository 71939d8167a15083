import math
from ctypes import c_int64, c_void_p
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, embedding, linear, pad

from elmo_plugin.modules.kernels.compiled import compiled_kernels, has_triton
from elmo_plugin.modules.linear.products import (
    column_sums,
    onednn_compiles,
    padded_rows,
    transposed_product,
    with_rows,
)
from elmo_plugin.util.errors import ConfigurationError

# Logits that exist at once: 32 MB in float32, more only above 131,072 words.
_MAX_LOGITS = 2**23
_MIN_ROWS = 64
# On a GPU, larger products are faster: 512 MB of logits in bfloat16.
_MAX_GPU_LOGITS = 2**28
# Logits that a program of the GPU's kernel reads at once.
_ROW_BLOCK = 2048
# Logits of more rows would leave the CPU's cache between two passes over them.
_MAX_ROWS = 1024


class Softmax(torch.nn.Module):
    """
    The output layer of a language model, one for both directions (section 3.1): the negative
    log-likelihood of the next word, over all words or estimated from a sample of them.

    The estimate: samples are drawn without replacement from the log-uniform distribution
    `p(r) = log((r + 2) / (r + 1)) / log(num_words + 1)` over word ids, which must be in descending
    order of counts. Each word gets an exponential key of rate `p`, and the words of the
    `num_samples` smallest keys are the sample; given the next smallest key `t`, a word is in it
    with probability `q = 1 - exp(-p t)`
    ([Cohen and Kaplan, 2008](https://doi.org/10.14778/1453856.1453884)). The targets of the batch
    have weight 1, other sampled words `1 / q`:

        Z ≈ sum over targets of exp(s_j) + sum over samples that are no target of exp(s_j) / q_j

    The expectation of this sum and of its gradient is exactly that of the full `Z`. Its logarithm
    is slightly low on average, so that sampled losses are not perplexities.

    # Parameters

    num_words : `int`
        Size of the vocabulary.
    dim : `int`
        Width of the hidden states.
    num_samples : `Optional[int]`, optional (default = `None`)
        Words drawn per batch in training. Default: the full softmax, as always in evaluation.
    """

    def __init__(self, num_words: int, dim: int, num_samples: Optional[int] = None) -> None:
        super().__init__()
        if num_samples is not None and num_samples < 1:
            raise ConfigurationError(
                f"elmo-bilm: expected num_samples of at least 1, or null for the full softmax, "
                f"found {num_samples}."
            )
        # A sample of all words would cost more than the full softmax.
        self.num_samples = num_samples if num_samples and num_samples < num_words else None
        self.weight = torch.nn.Parameter(torch.empty(num_words, dim).normal_(0.0, dim**-0.5))
        self.bias = torch.nn.Parameter(torch.zeros(num_words))

    @property
    def is_sampled(self) -> bool:
        """True if `forward` estimates the loss from samples."""
        return self.training and self.num_samples is not None

    def forward(
        self,
        hidden: Sequence[torch.Tensor],
        targets: Sequence[torch.Tensor],
        generator: Optional[torch.Generator] = None,
    ) -> List[torch.Tensor]:
        """
        The sum of the negative log-likelihoods of each direction, in nats.

        # Parameters

        hidden : `Sequence[torch.Tensor]`
            Of each direction: shape `(num_predictions, dim)`.
        targets : `Sequence[torch.Tensor]`
            Of each direction: shape `(num_predictions,)`. Word ids.
        generator : `Optional[torch.Generator]`
            Draws the samples, the same for all directions; on the device of `hidden`.
        """
        weight: torch.Tensor = self.weight
        bias: torch.Tensor = self.bias
        if self.is_sampled:
            words, log_probability, target_positions = self._candidates(
                torch.cat(list(targets)), generator
            )
            targets = target_positions.split([len(word_ids) for word_ids in targets])
            weight = embedding(words, weight)
            bias = embedding(words, bias.unsqueeze(1)).squeeze(1) - log_probability
        return [
            next_word_loss(states, weight, bias, positions)
            for states, positions in zip(hidden, targets)
        ]

    def _candidates(
        self, targets: torch.Tensor, generator: Optional[torch.Generator]
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        The distinct targets and samples, the logarithm of the probability `q` of each (0 for a
        target), and the positions of the targets in them.
        """
        assert self.num_samples is not None
        samples, log_probability = sample_log_uniform(
            len(self.weight), self.num_samples, targets.device, generator
        )
        words, where = torch.cat([targets, samples]).unique(return_inverse=True)
        log_probabilities = log_probability.new_empty(len(words))
        log_probabilities[where[len(targets) :]] = log_probability
        log_probabilities[where[: len(targets)]] = 0.0
        return words, log_probabilities, where[: len(targets)]


def sample_log_uniform(
    num_words: int, num_samples: int, device: torch.device, generator: Optional[torch.Generator]
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    Distinct word ids and the logarithm of their probabilities `q`, see `Softmax`: shape
    `(num_samples,)` each.
    """
    rank = torch.arange(1, num_words + 1, device=device, dtype=torch.float32)
    rate = torch.log1p(1.0 / rank).div_(math.log(num_words + 1))
    keys = torch.empty_like(rate).exponential_(generator=generator).div_(rate)
    smallest, samples = keys.topk(num_samples + 1, largest=False, sorted=True)
    samples = samples[:-1]
    return samples, torch.log(-torch.expm1(-rate[samples] * smallest[-1]))


def next_word_loss(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """
    Summed cross-entropy of `hidden @ weight.t() + bias` in nats, computed in chunks so that at most
    about eight million logits are in memory; the forward pass also computes the gradients. Matrix
    products follow `torch.autocast`.

    # Parameters

    hidden, weight, bias : `torch.Tensor`
        Shape `(num_predictions, dim)`, `(num_words, dim)`, `(num_words,)`.
    targets : `torch.Tensor`
        Shape `(num_predictions,)`. Rows of `weight`.
    """
    return _NextWordLoss.apply(hidden, weight, bias, targets, torch.is_grad_enabled())


@torch.no_grad()
def next_word_losses(
    hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """
    The cross-entropy of each row of `hidden`, as `next_word_loss` but without gradients: shape
    `(num_predictions,)`, in nats.
    """
    losses = bias.new_empty(len(hidden))
    num_words = len(weight)
    hidden, padded_weight, bias = _for_products(hidden, weight, bias)
    # Shape: (largest chunk, num_words). A buffer for each chunk would cost as much as a product.
    buffer = hidden.new_empty(min(len(hidden), _chunk_size(hidden.device, num_words)), len(padded_weight))
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
        """Gradients of `hidden`, `weight` and `bias`."""
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
    # On a GPU, products with rows of an odd number of bytes are several times slower.
    if onednn_compiles(hidden) or device == "cuda":
        # The additional words have probability 0.
        weight = with_rows(weight, padded_rows(num_words))
        bias = pad(bias, (0, len(weight) - num_words), value=-math.inf)
    return hidden, weight, bias


def _chunks(hidden: torch.Tensor, num_words: int) -> Iterator[slice]:
    size = _chunk_size(hidden.device, num_words)
    for first in range(0, len(hidden), size):
        yield slice(first, first + size)


def _chunk_size(device: torch.device, num_words: int) -> int:
    if device.type != "cpu":
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
    kernels = compiled_kernels()
    dtype = {torch.float32: "float32", torch.bfloat16: "bfloat16"}.get(logits.dtype)
    is_float32 = bias.dtype == torch.float32 and logits.device.type == "cpu"
    if kernels is None or dtype is None or not is_float32:
        return None
    losses = bias.new_empty(len(logits))
    tensors = bias.contiguous(), targets.contiguous(), logits, losses
    function = getattr(kernels, f"{name}_{dtype}")
    function.argtypes = [c_int64, c_int64, *len(tensors) * [c_void_p]]
    function(*logits.shape, *(tensor.data_ptr() for tensor in tensors))
    return losses


def _run_rows(
    differentiates: bool, bias: torch.Tensor, targets: torch.Tensor, logits: torch.Tensor
) -> Optional[torch.Tensor]:
    if not has_triton() or bias.dtype != torch.float32 or logits.dtype == torch.float64:
        return None
    from elmo_plugin.modules.kernels.softmax_rows import softmax_rows

    losses = bias.new_empty(len(logits))
    if len(logits):
        arguments = bias.contiguous(), targets.contiguous(), logits.contiguous(), losses
        softmax_rows[len(logits),](
            logits.size(1), *arguments, DIFFERENTIATES=differentiates, BLOCK=_ROW_BLOCK
        )
    return losses
