from typing import NamedTuple, Tuple, Union

import torch
from torch.nn.functional import embedding_bag

from elmo_plugin.tasks.coref.scoring import ScoringFeedForward, ScoringSettings


class Spans(NamedTuple):
    """Spans of a text."""

    #: Shape `(num_spans,)`. Positions of the first and last token of each span.
    starts: torch.Tensor
    ends: torch.Tensor

    def select(self, which: Union[torch.Tensor, slice]) -> "Spans":
        """The spans at some indices or of a slice."""
        return Spans(self.starts[which], self.ends[which])


def enumerate_spans(lengths: torch.Tensor, max_width: int) -> Spans:
    """
    Every span of at most `max_width` tokens within one sentence.

    # Parameters

    lengths : `torch.Tensor`
        Shape `(num_sentences,)`. The number of tokens of each sentence.
    max_width : `int`

    # Returns

    `Spans`
        Sorted by start, then by length. Positions are relative to the first token of the first
        sentence.
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
    Span representations `[h_start; h_end; head; width]` (Lee et al. 2017, section 3.2) and mention
    scores. `h` is an encoded token; the head is an attention-weighted mean of the embedded tokens;
    the width is an embedding.

    Scores of all spans are computed without their representations: the input layer is a sum of
    products that are computed once per token or width.

    # Parameters

    encoded_dim, embedded_dim : `int`
        Widths of an encoded and of an embedded token.
    settings : `ScoringSettings`
    """

    def __init__(self, encoded_dim: int, embedded_dim: int, settings: ScoringSettings) -> None:
        super().__init__()
        self.max_width = settings.max_span_width
        self.head_attention = torch.nn.Linear(encoded_dim, 1)
        self.width_embeddings = torch.nn.Parameter(
            torch.empty(self.max_width, settings.feature_dim)
        )
        torch.nn.init.xavier_uniform_(self.width_embeddings)
        self.feature_dropout = torch.nn.Dropout(settings.dropout)
        dims = (encoded_dim, encoded_dim, embedded_dim, settings.feature_dim)
        self.feedforward = ScoringFeedForward(dims, settings)

    def forward(
        self, encoded: torch.Tensor, embedded: torch.Tensor, spans: Spans
    ) -> Tuple[torch.Tensor, "SpanRepresentations"]:
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
        `SpanRepresentations`
            Computes the representations of selected spans.
        """
        widths = self.feature_dropout(self.width_embeddings)
        offsets = torch.arange(self.max_width, device=encoded.device)
        # Shape: (num_spans, max_width)
        positions = spans.starts.unsqueeze(1) + offsets
        outside = positions > spans.ends.unsqueeze(1)
        positions = positions.masked_fill(outside, 0)
        head_logits = self.head_attention(encoded).squeeze(1)[positions]
        weights = head_logits.masked_fill(outside, float("-inf")).softmax(dim=1)
        vectors = SpanRepresentations(encoded, embedded, widths, spans, positions, weights)
        return self._scores(vectors), vectors

    def _scores(self, vectors: "SpanRepresentations") -> torch.Tensor:
        encoded, spans, num_tokens = vectors.encoded, vectors.spans, len(vectors.encoded)
        start_weight, end_weight, head_weight, width_weight = self.feedforward.input_weights()
        # Shape: (3 * num_tokens + max_width, feedforward_dim)
        products = torch.cat(
            [
                encoded @ start_weight.t(),
                encoded @ end_weight.t(),
                vectors.embedded @ head_weight.t(),
                torch.addmm(self.feedforward.input_layer.bias, vectors.widths, width_weight.t()),
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
        return self.feedforward(_weighted_sums(rows, products, weights))


class SpanRepresentations(NamedTuple):
    """
    The tensors from which representations of selected spans are computed. Representations of all
    spans of a long document would take gigabytes.
    """

    #: Shapes `(num_tokens, encoded_dim)` and `(num_tokens, embedded_dim)`.
    encoded: torch.Tensor
    embedded: torch.Tensor
    #: Shape `(max_width, feature_dim)`.
    widths: torch.Tensor
    spans: Spans
    #: Shape `(num_spans, max_width)`. The positions of each span's tokens and their head attention
    #: weights. Shorter spans are padded with position 0 and weight 0.
    positions: torch.Tensor
    weights: torch.Tensor

    def heads_and_widths(self, which: torch.Tensor) -> torch.Tensor:
        """
        The head and width parts of the representations of the spans at some indices: from shape
        `(num_chosen,)` to shape `(num_chosen, embedded_dim + feature_dim)`.
        """
        starts, ends = self.spans.select(which)
        heads = _weighted_sums(self.positions[which], self.embedded, self.weights[which])
        return torch.cat([heads, self.widths[ends - starts]], dim=1)


def _weighted_sums(rows: torch.Tensor, table: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """
    Weighted sums of rows of a table of shape `(num_rows, dim)`; row indices and weights have shape
    `(num_sums, num_summands)`. The summands are not stored.
    """
    return embedding_bag(rows, table, mode="sum", per_sample_weights=weights.to(table.dtype))
