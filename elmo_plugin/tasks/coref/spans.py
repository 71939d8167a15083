from typing import NamedTuple, Tuple

import torch
from torch.nn.functional import embedding_bag

from elmo_plugin.tasks.coref.scoring import ScoringLayers, ScoringSettings


class Spans(NamedTuple):
    """
    Spans of a text, by where they start, short before long.

    # Parameters

    starts, ends : `torch.Tensor`
        Shape `(num_spans,)`. Positions of their first and last tokens.
    """

    starts: torch.Tensor
    ends: torch.Tensor

    def chosen(self, which: torch.Tensor) -> "Spans":
        """Those at some positions, or of a slice."""
        return Spans(self.starts[which], self.ends[which])


def spans_within(lengths: torch.Tensor, max_width: int) -> Spans:
    """
    Every span of at most `max_width` tokens that lies in one sentence.

    # Parameters

    lengths : `torch.Tensor`
        Shape `(num_sentences,)`. Numbers of tokens.
    max_width : `int`

    # Returns

    `Spans`
        Positions count through all sentences.
    """
    tokens = torch.arange(int(lengths.sum()), device=lengths.device)
    # How many tokens follow in the sentence, and the token itself.
    remaining = lengths.cumsum(0).repeat_interleave(lengths) - tokens
    counts = remaining.clamp(max=max_width)
    starts = tokens.repeat_interleave(counts)
    first_of_start = (counts.cumsum(0) - counts).repeat_interleave(counts)
    ends = starts + torch.arange(len(starts), device=lengths.device) - first_of_start
    return Spans(starts, ends)


class SpanReader(torch.nn.Module):
    """
    What stands for a span, `[h_start; h_end; head; width]` (Lee et al. 2017, section 3.2), and how
    much like a mention it is. The head is the mean of the embedded tokens, weighted by a softmax
    over what a token's `h` says of its being one.

    The score of a span is computed without its vector: the first layer is a sum of products, each
    of which is one of few tokens or widths.

    # Parameters

    encoded_dim, embedded_dim : `int`
        Widths of `h` and of an embedded token.
    settings : `ScoringSettings`
    """

    def __init__(self, encoded_dim: int, embedded_dim: int, settings: ScoringSettings) -> None:
        super().__init__()
        self.max_width = settings.max_span_width
        self.head = torch.nn.Linear(encoded_dim, 1)
        self.width_features = torch.nn.Parameter(torch.empty(self.max_width, settings.feature_dim))
        torch.nn.init.xavier_uniform_(self.width_features)
        self.feature_dropout = torch.nn.Dropout(settings.dropout)
        dims = (encoded_dim, encoded_dim, embedded_dim, settings.feature_dim)
        self.layers = ScoringLayers(dims, settings)

    def forward(
        self, encoded: torch.Tensor, embedded: torch.Tensor, spans: Spans
    ) -> Tuple[torch.Tensor, "SpanVectors"]:
        """
        # Parameters

        encoded : `torch.Tensor`
            Shape `(num_tokens, encoded_dim)`.
        embedded : `torch.Tensor`
            Shape `(num_tokens, embedded_dim)`.
        spans : `Spans`

        # Returns

        `torch.Tensor`
            Shape `(num_spans,)`. Mention scores.
        `SpanVectors`
            From which the vectors of some of the spans are made.
        """
        widths = self.feature_dropout(self.width_features)
        places = torch.arange(self.max_width, device=encoded.device)
        # Shape: (num_spans, max_width)
        positions = spans.starts.unsqueeze(1) + places
        outside = positions > spans.ends.unsqueeze(1)
        positions = positions.masked_fill(outside, 0)
        head_scores = self.head(encoded).squeeze(1)[positions]
        weights = head_scores.masked_fill(outside, float("-inf")).softmax(dim=1)
        vectors = SpanVectors(encoded, embedded, widths, spans, positions, weights)
        return self._scores(vectors), vectors

    def _scores(self, vectors: "SpanVectors") -> torch.Tensor:
        encoded, spans, num_tokens = vectors.encoded, vectors.spans, len(vectors.encoded)
        of_start, of_end, of_head, of_width = self.layers.first_weights()
        # Shape: (3 * num_tokens + max_width, feedforward_dim)
        products = torch.cat(
            [
                encoded @ of_start.t(),
                encoded @ of_end.t(),
                vectors.embedded @ of_head.t(),
                torch.addmm(self.layers.first.bias, vectors.widths, of_width.t()),
            ]
        )
        others = torch.stack(
            [
                spans.starts,
                num_tokens + spans.ends,
                3 * num_tokens + spans.ends - spans.starts,
            ],
            dim=1,
        )
        # Shape: (num_spans, 3 + max_width)
        rows = torch.cat([others, 2 * num_tokens + vectors.positions], dim=1)
        weights = torch.cat([vectors.weights.new_ones(others.shape), vectors.weights], dim=1)
        return self.layers.rest(_weighted_sums(rows, products, weights))


class SpanVectors(NamedTuple):
    """
    What the vectors of spans are made of. Few are needed, and those of all spans of a long document
    would take gigabytes.

    # Parameters

    encoded, embedded : `torch.Tensor`
        Shapes `(num_tokens, encoded_dim)` and `(num_tokens, embedded_dim)`.
    widths : `torch.Tensor`
        Shape `(max_width, feature_dim)`.
    spans : `Spans`
    positions, weights : `torch.Tensor`
        Shape `(num_spans, max_width)`. The tokens of each span, any at all where it is shorter, and
        how much each of them is its head.
    """

    encoded: torch.Tensor
    embedded: torch.Tensor
    widths: torch.Tensor
    spans: Spans
    positions: torch.Tensor
    weights: torch.Tensor

    def heads_and_widths(self, which: torch.Tensor) -> torch.Tensor:
        """
        What the vectors of some spans have besides their first and last token: from shape
        `(num_chosen,)` to shape `(num_chosen, embedded_dim + feature_dim)`.
        """
        starts, ends = self.spans.chosen(which)
        heads = _weighted_sums(self.positions[which], self.embedded, self.weights[which])
        return torch.cat([heads, self.widths[ends - starts]], dim=1)


def _weighted_sums(rows: torch.Tensor, table: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """
    Sums of rows of a table, shape `(num_rows, dim)`; rows and weights have shape
    `(num_sums, num_summands)`. What is summed is never laid out.
    """
    return embedding_bag(rows, table, mode="sum", per_sample_weights=weights.to(table.dtype))
