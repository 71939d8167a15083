import math
from typing import List, Optional, Sequence, Tuple

import torch
from torch.nn.functional import embedding

from elmo_plugin.bilm.pretraining.next_word_loss import next_word_loss
from elmo_plugin.util.errors import ConfigurationError


class Softmax(torch.nn.Module):
    """
    The output layer of a language model, one for both directions (section 3.1): the negative
    log-likelihood of the next word, over all words or, in training, over `num_samples` of them.

    Samples are drawn without replacement from the log-uniform distribution
    `p(r) = log((r + 2) / (r + 1)) / log(num_words + 1)` over word ids, which must be in descending
    order of counts. Each word gets an exponential key of rate `p`, and the smallest keys are the
    sample. Given the next smallest key `t`, a word is in it with probability `q = 1 - exp(-p t)`
    ([Cohen and Kaplan, 2008](https://doi.org/10.14778/1453856.1453884)). Targets have weight 1,
    other samples `1 / q`:

        Z ≈ sum over targets of exp(s_j) + sum over samples that are no target of exp(s_j) / q_j

    The expectation of this sum and of its gradient is exactly that of the full `Z`. Its logarithm
    is slightly low on average, so sampled losses are not perplexities.
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
        The sum of the negative log-likelihoods of each direction, in nats. For each direction,
        `hidden` has shape `(num_predictions, dim)`, and `targets`, the word ids,
        `(num_predictions,)`. `generator`, on their device, draws one sample for all directions.
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
        """Distinct targets and samples, their `log(q)` (0 for targets), and where targets are."""
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
    """Distinct word ids and `log(q)` of each, see `Softmax`: shape `(num_samples,)`."""
    rank = torch.arange(1, num_words + 1, device=device, dtype=torch.float32)
    rate = torch.log1p(1.0 / rank).div_(math.log(num_words + 1))
    keys = torch.empty_like(rate).exponential_(generator=generator).div_(rate)
    smallest, samples = keys.topk(num_samples + 1, largest=False, sorted=True)
    samples = samples[:-1]
    return samples, torch.log(-torch.expm1(-rate[samples] * smallest[-1]))
