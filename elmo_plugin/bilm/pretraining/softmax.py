import math
from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding, linear

from elmo_plugin.util.errors import ConfigurationError

# Logits that exist at once: 32 MB in float32, more only above 131,072 words.
_MAX_LOGITS = 2**23
_MIN_ROWS = 64


class Softmax(torch.nn.Module):
    """
    The output layer of a language model, one for both directions (section 3.1): the negative
    log-likelihood of the next word, over all words or estimated from a sample of them.

    The estimate: samples are drawn without replacement from the log-uniform distribution
    `p(r) ~ log((r + 2) / (r + 1))` over word ids, which must be in descending order of counts.
    Each word gets an exponential key of rate `p`, and the words of the `num_samples` smallest keys
    are the sample; given the next smallest key `t`, a word is in it with probability
    `q = 1 - exp(-p t)` ([Cohen and Kaplan, 2008](https://doi.org/10.14778/1453856.1453884)). The
    targets of the batch have weight 1, other sampled words `1 / q`:

        Z ~ sum over targets of exp(s_j) + sum over samples that are no target of exp(s_j) / q_j

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
                f"elmo-bilm: expected num_samples of at least 1, or null for the full softmax, got "
                f"{num_samples}."
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
        hidden: torch.Tensor,
        targets: torch.Tensor,
        generator: Optional[torch.Generator] = None,
    ) -> torch.Tensor:
        """
        The sum of the negative log-likelihoods, in nats.

        # Parameters

        hidden : `torch.Tensor`
            Shape `(num_predictions, dim)`.
        targets : `torch.Tensor`
            Shape `(num_predictions,)`. Word ids.
        generator : `Optional[torch.Generator]`
            Draws the samples; on the device of `hidden`.
        """
        if not self.is_sampled:
            return next_word_loss(hidden, self.weight, self.bias, targets)
        words, log_probability, targets = self._candidates(targets, generator)
        return next_word_loss(
            hidden,
            embedding(words, self.weight),
            embedding(words, self.bias.unsqueeze(1)).squeeze(1) - log_probability,
            targets,
        )

    def _candidates(
        self, targets: torch.Tensor, generator: Optional[torch.Generator]
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        The words of the estimate, the logarithm of the probability of each, and the positions of
        the targets in them.
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
        device = hidden.device.type
        dtype = hidden.dtype
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        full = bias.dtype
        hidden_, weight_ = hidden.to(dtype), weight.to(dtype)
        loss = bias.new_zeros(())
        gradients = None
        if requires_grad:
            gradients = torch.empty_like(hidden_), torch.zeros_like(weight), torch.zeros_like(bias)
        size = max(_MIN_ROWS, _MAX_LOGITS // len(weight))
        for first in range(0, len(hidden), size):
            rows = slice(first, first + size)
            # Shape: (size, num_words)
            logits = linear(hidden_[rows], weight_).to(full).add_(bias)
            target = targets[rows].unsqueeze(1)
            if gradients is None:
                loss += (logits.logsumexp(dim=1, keepdim=True) - logits.gather(1, target)).sum()
                continue
            chances = torch.log_softmax(logits, dim=1)
            chance = chances.gather(1, target)
            loss -= chance.sum()
            chances.exp_().scatter_(1, target, chance.exp() - 1.0)
            d_hidden, d_weight, d_bias = gradients
            d_bias += chances.sum(dim=0)
            chances = chances.to(dtype)
            d_hidden[rows] = chances @ weight_
            d_weight += chances.t() @ hidden_[rows]
        if gradients is not None:
            ctx.save_for_backward(*gradients)
            ctx.dtype = hidden.dtype
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """Gradients of `hidden`, `weight` and `bias`."""
        d_hidden, d_weight, d_bias = ctx.saved_tensors
        return (d_hidden * d_loss).to(ctx.dtype), d_weight * d_loss, d_bias * d_loss, None, None
