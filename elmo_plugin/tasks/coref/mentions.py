from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Sequence, Tuple

import torch
from allennlp.common import FromParams
from overrides import overrides
from torch.nn.functional import embedding_bag

from elmo_plugin.util.errors import ConfigurationError, check_dropout, check_least


@dataclass
class ScoringSettings(FromParams):
    """Sizes and limits of both span scorers. The defaults are from Lee et al. (2017)."""

    #: Number of tokens of the longest candidate span.
    max_span_width: int = 10
    #: Number of spans that pruning keeps, per token of the document.
    spans_per_word: float = 0.4
    #: Number of preceding top spans considered as antecedents of a span.
    max_antecedents: int = 250
    #: Width of both hidden layers of both scorers.
    feedforward_dim: int = 150
    #: Width of the embeddings of span width, distance, genre and same speaker.
    feature_dim: int = 20
    #: Dropout of hidden layers and of these embeddings.
    dropout: float = 0.2

    def __post_init__(self) -> None:
        names = ("max_span_width", "max_antecedents", "feedforward_dim", "feature_dim")
        check_least(1, **{name: getattr(self, name) for name in names})
        check_dropout(dropout=self.dropout)
        if not self.spans_per_word > 0.0:
            raise ConfigurationError(
                f"Expected `spans_per_word` above 0, found {self.spans_per_word}."
            )


class ScoringFeedForward(torch.nn.Module):
    """
    Scores concatenated vectors of widths `input_dims` with two hidden layers. The caller computes
    the input layer as a sum over vectors: a vector that many inputs share is multiplied only once.
    """

    def __init__(self, input_dims: Sequence[int], settings: ScoringSettings) -> None:
        super().__init__()
        self.input_dims = list(input_dims)
        hidden_dim = settings.feedforward_dim
        self.input_layer = torch.nn.Linear(sum(input_dims), hidden_dim)
        self.hidden_layer = torch.nn.Linear(hidden_dim, hidden_dim)
        self.output_layer = torch.nn.Linear(hidden_dim, 1)
        self.dropout = _Dropout(settings.dropout)
        for layer in (self.input_layer, self.hidden_layer, self.output_layer):
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)

    def input_weights(self) -> Tuple[torch.Tensor, ...]:
        """The input layer's weights for each vector, shape `(hidden_dim, input_dim)`."""
        return self.input_layer.weight.split(self.input_dims, dim=1)

    def forward(self, sums: torch.Tensor) -> torch.Tensor:
        """From the input layer's output before ReLU, `(..., hidden_dim)`, to scores, `(...,)`."""
        hidden = self.dropout(sums.relu())
        hidden = self.dropout(self.hidden_layer(hidden).relu())
        return self.output_layer(hidden).squeeze(-1)


class _Dropout(torch.nn.Dropout):
    """
    Dropout for span pairs, the model's largest tensors. Three times as fast on a CPU, because it
    draws one random 64-bit integer for four values; its rate is rounded to a multiple of 1/65536.
    """

    @overrides(check_signature=False)
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        # One value of 65,536 is kept at the highest rates.
        dropped = min(round(self.p * 2**16), 2**16 - 1)
        if not self.training or not dropped:
            return inputs
        bits = torch.empty(-(-inputs.numel() // 4), dtype=torch.int64, device=inputs.device)
        bits = bits.random_(-(2**63), None).view(torch.int16)
        is_kept = bits[: inputs.numel()].view(inputs.shape) >= dropped - 2**15
        return inputs * is_kept.to(inputs.dtype).mul_(2**16 / (2**16 - dropped))


class Spans(NamedTuple):
    """Spans of a text."""

    #: Shape `(num_spans,)`. Positions of the first and last token of each span.
    starts: torch.Tensor
    ends: torch.Tensor

    def select(self, which: torch.Tensor) -> "Spans":
        return Spans(self.starts[which], self.ends[which])


def enumerate_spans(lengths: torch.Tensor, max_width: int) -> Spans:
    """
    All spans of at most `max_width` tokens within a sentence, sorted by start, then by length.
    Positions count from the first token of consecutive sentences of the given lengths.
    """
    tokens = torch.arange(int(lengths.sum()), device=lengths.device)
    # The number of tokens from here to the end of the sentence, this one included.
    remaining = lengths.cumsum(0).repeat_interleave(lengths) - tokens
    counts = remaining.clamp(max=max_width)
    starts = tokens.repeat_interleave(counts)
    first_of_start = (counts.cumsum(0) - counts).repeat_interleave(counts)
    ends = starts + torch.arange(len(starts), device=lengths.device) - first_of_start
    return Spans(starts, ends)


class MentionScorer(torch.nn.Module):
    """
    Scores spans as mentions, and represents them by `[h_start; h_end; head; width]` (Lee et al.
    2017, section 3.2): encoded tokens, an attention-weighted mean of the embedded tokens, and an
    embedding. Scores need no representations: products per token and per width are summed.
    """

    def __init__(self, encoded_dim: int, embedded_dim: int, settings: ScoringSettings) -> None:
        super().__init__()
        self.max_width = settings.max_span_width
        self.head_attention = torch.nn.Linear(encoded_dim, 1)
        self.width_embeddings = new_embeddings(self.max_width, settings.feature_dim)
        self.feature_dropout = torch.nn.Dropout(settings.dropout)
        dims = (encoded_dim, encoded_dim, embedded_dim, settings.feature_dim)
        self.feedforward = ScoringFeedForward(dims, settings)

    def forward(
        self, encoded: torch.Tensor, embedded: torch.Tensor, spans: Spans
    ) -> Tuple[torch.Tensor, "SpanRepresentations"]:
        """Returns scores, shape `(num_spans,)`. For other shapes see `SpanRepresentations`."""
        widths = self.feature_dropout(self.width_embeddings)
        offsets = torch.arange(self.max_width, device=encoded.device)
        # Shape: (num_spans, max_width)
        positions = spans.starts.unsqueeze(1) + offsets
        outside = positions > spans.ends.unsqueeze(1)
        positions = positions.masked_fill(outside, 0)
        head_logits = self.head_attention(encoded).squeeze(1)[positions]
        weights = head_logits.masked_fill(outside, float("-inf")).softmax(dim=1)
        vectors = SpanRepresentations(embedded, widths, spans, positions, weights)
        start_weight, end_weight, head_weight, width_weight = self.feedforward.input_weights()
        # Shape: (3 * num_tokens + max_width, feedforward_dim)
        products = torch.cat(
            [
                encoded @ start_weight.t(),
                encoded @ end_weight.t(),
                embedded @ head_weight.t(),
                torch.addmm(self.feedforward.input_layer.bias, widths, width_weight.t()),
            ]
        )
        num_tokens = len(encoded)
        of_widths = 3 * num_tokens + spans.ends - spans.starts
        others = torch.stack([spans.starts, num_tokens + spans.ends, of_widths], dim=1)
        # Shape: (num_spans, 3 + max_width)
        rows = torch.cat([others, 2 * num_tokens + positions], dim=1)
        weights = torch.cat([weights.new_ones(others.shape), weights], dim=1)
        return self.feedforward(_weighted_sums(rows, products, weights)), vectors


class SpanRepresentations(NamedTuple):
    """Represents selected spans: representations of all spans would take gigabytes."""

    #: Shape `(num_tokens, embedded_dim)`.
    embedded: torch.Tensor
    #: Shape `(max_width, feature_dim)`.
    widths: torch.Tensor
    spans: Spans
    #: Shape `(num_spans, max_width)`. The positions of each span's tokens and their head attention
    #: weights. Shorter spans are padded with position 0 and weight 0.
    positions: torch.Tensor
    weights: torch.Tensor

    def heads_and_widths(self, which: torch.Tensor) -> torch.Tensor:
        """Head and width of selected spans, shape `(num_chosen, embedded_dim + feature_dim)`."""
        starts, ends = self.spans.select(which)
        heads = _weighted_sums(self.positions[which], self.embedded, self.weights[which])
        return torch.cat([heads, self.widths[ends - starts]], dim=1)


def new_embeddings(number: int, dim: int) -> torch.nn.Parameter:
    """Shape `(number, dim)`."""
    return torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(number, dim)))


def _weighted_sums(rows: torch.Tensor, table: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted sums of rows of a table, shape `(num_sums, dim)`, without storing the summands."""
    return embedding_bag(rows, table, mode="sum", per_sample_weights=weights.to(table.dtype))


def prune_spans(spans: Spans, scores: torch.Tensor, number: int) -> torch.Tensor:
    """
    Selects up to `number` spans by score, the first if tied. Skips spans that overlap a selected
    one, unless one contains the other (Lee et al. 2017, section 5). Returns sorted indices.
    """
    starts, ends = spans.starts.tolist(), spans.ends.tolist()
    # By token: the last end of the selected spans that start there, the first start of the ones
    # that end there.
    last_end: Dict[int, int] = {}
    first_start: Dict[int, int] = {}
    chosen: List[int] = []
    for which in scores.argsort(descending=True, stable=True).tolist():
        if len(chosen) == number:
            break
        start, end = starts[which], ends[which]
        later = range(start + 1, end + 1)
        if any(last_end.get(token, end) > end for token in later):
            continue
        if any(first_start.get(token - 1, start) < start for token in later):
            continue
        last_end[start] = max(last_end.get(start, end), end)
        first_start[end] = min(first_start.get(end, start), start)
        chosen.append(which)
    return torch.tensor(sorted(chosen), dtype=torch.long, device=scores.device)
