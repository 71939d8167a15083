from dataclasses import dataclass
from typing import Sequence, Tuple

import torch
from allennlp.common import FromParams
from overrides import overrides


@dataclass
class ScoringSettings(FromParams):
    """
    Sizes and limits of what scores spans and pairs of them; by default those of Lee et al. (2017).

    # Parameters

    max_span_width : `int`, optional (default = `10`)
        Tokens of the longest span.
    spans_per_word : `float`, optional (default = `0.4`)
        How many spans are kept for pairs, per token of the document.
    max_antecedents : `int`, optional (default = `250`)
        How many of the spans kept before it a span is compared with.
    feedforward_dim : `int`, optional (default = `150`)
        Width of both hidden layers of both scores.
    feature_dim : `int`, optional (default = `20`)
        Width of each of: width, distance, genre, same speaker.
    dropout : `float`, optional (default = `0.2`)
        Of hidden layers and features.
    """

    max_span_width: int = 10
    spans_per_word: float = 0.4
    max_antecedents: int = 250
    feedforward_dim: int = 150
    feature_dim: int = 20
    dropout: float = 0.2


class ScoringLayers(torch.nn.Module):
    """
    A feed-forward network from several vectors to one number, with two hidden layers. Its first
    product is the caller's: each vector has weights of its own, so that the product of one that
    recurs is computed once.

    # Parameters

    input_dims : `Sequence[int]`
        Widths of the vectors.
    settings : `ScoringSettings`
    """

    def __init__(self, input_dims: Sequence[int], settings: ScoringSettings) -> None:
        super().__init__()
        self.input_dims = list(input_dims)
        hidden_dim = settings.feedforward_dim
        self.first = torch.nn.Linear(sum(input_dims), hidden_dim)
        self.second = torch.nn.Linear(hidden_dim, hidden_dim)
        self.last = torch.nn.Linear(hidden_dim, 1)
        self.dropout = _Dropout(settings.dropout)
        for layer in (self.first, self.second, self.last):
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)

    def first_weights(self) -> Tuple[torch.Tensor, ...]:
        """The first layer's weights of each vector, shape `(hidden_dim, input_dim)`."""
        return self.first.weight.split(self.input_dims, dim=1)

    def rest(self, sums: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        sums : `torch.Tensor`
            Shape `(..., hidden_dim)`. What the first layer says, its bias included.

        # Returns

        `torch.Tensor`
            Shape `(...,)`.
        """
        hidden = self.dropout(sums.relu())
        hidden = self.dropout(self.second(hidden).relu())
        return self.last(hidden).squeeze(-1)


class _Dropout(torch.nn.Dropout):
    """
    `torch.nn.Dropout` with a rate in 65536ths, in a third of its time on a CPU: a number of 64
    random bits decides on four values. Hidden layers of pairs are the largest tensors there are.
    """

    @overrides(check_signature=False)
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        dropped = round(self.p * 2**16)
        if not self.training or not dropped:
            return inputs
        bits = torch.empty(-(-inputs.numel() // 4), dtype=torch.int64, device=inputs.device)
        bits = bits.random_(-(2**63), None).view(torch.int16)
        is_kept = bits[: inputs.numel()].view(inputs.shape) >= dropped - 2**15
        return inputs * is_kept.to(inputs.dtype).mul_(2**16 / max(1, 2**16 - dropped))
