from bisect import bisect
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

from elmo_plugin.tasks.coref.mentions import (
    ScoringFeedForward,
    ScoringSettings,
    new_embeddings,
)

# The smallest distance of each bucket: 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64 and more.
_DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)
# The buckets of 1, 2, ..., 64.
BUCKETS = [bisect(_DISTANCES, distance) - 1 for distance in range(1, _DISTANCES[-1] + 1)]
# Number of spans whose antecedents are scored at once: more are faster and need more memory.
_SPANS_AT_ONCE = 16


class TopSpans(NamedTuple):
    """The spans of a document that pruning kept, sorted by position."""

    #: Shape `(num_tokens, encoded_dim)`.
    encoded: torch.Tensor
    #: Shape `(num_top_spans,)`. Positions of each span's first and last token in `encoded`.
    starts: torch.Tensor
    ends: torch.Tensor
    #: Shape `(num_top_spans, head_and_width_dim)`. The other parts of the span representations.
    heads_and_widths: torch.Tensor
    #: Shape `(num_top_spans,)`. Mention scores.
    scores: torch.Tensor
    #: Shape `(num_top_spans,)`. Speaker ids.
    speakers: torch.Tensor
    #: Shape `()`. The genre id of the document.
    genre: torch.Tensor

    def representations(self) -> torch.Tensor:
        """Shape `(num_top_spans, 2 * encoded_dim + head_and_width_dim)`."""
        parts = [self.encoded[self.starts], self.encoded[self.ends], self.heads_and_widths]
        return torch.cat(parts, dim=1)


class AntecedentScores(NamedTuple):
    """Scores of the antecedents of a block of consecutive spans."""

    #: The indices of these spans and of their candidate antecedents among the top spans.
    spans: slice
    antecedents: slice
    #: Shape `(1 + num_antecedents, num_spans)`. The first row is 0, the score of having no
    #: antecedent. -inf for spans that do not precede the span or are too far away.
    scores: torch.Tensor


class AntecedentScorer(torch.nn.Module):
    """
    Scores pairs of spans: s_m(i) + s_m(j) + s_a(i, j) (Lee et al. 2017, equations 2 to 4). s_a
    reads both span representations, their elementwise product, and embeddings of same speaker, of
    the distance in top spans, and of the genre.

    These inputs are never concatenated, which saves time and memory. The input layer's products are
    computed once per span, per embedding, and per pair of start tokens or end tokens.
    """

    def __init__(
        self, encoded_dim: int, head_and_width_dim: int, num_genres: int, settings: ScoringSettings
    ) -> None:
        super().__init__()
        self.max_antecedents = settings.max_antecedents
        feature_dim = settings.feature_dim
        self.same_speaker_embeddings = new_embeddings(2, feature_dim)
        self.distance_embeddings = new_embeddings(len(_DISTANCES), feature_dim)
        self.genre_embeddings = new_embeddings(num_genres, feature_dim)
        with torch.no_grad():
            # Padding and unknown genres do not occur in training.
            self.genre_embeddings[:2] = 0.0
        self.feature_dropout = torch.nn.Dropout(settings.dropout)
        self.part_dims = [encoded_dim, encoded_dim, head_and_width_dim]
        self.feedforward = ScoringFeedForward(
            [sum(self.part_dims)] * 3 + [feature_dim] * 3, settings
        )

    # Not `forward`: AllenNLP writes the outputs of modules as JSON, and this is an iterator.
    def blocks(self, top_spans: TopSpans) -> Iterator[AntecedentScores]:
        """Scores all spans in order. Without gradients, only one block is in memory at a time."""
        # The weights of the input layer for each part of its input.
        span, antecedent, product, speaker, distance, genre = self.feedforward.input_weights()
        genre_embedding = self.feature_dropout(self.genre_embeddings[top_spans.genre])
        bias = self.feedforward.input_layer.bias + genre @ genre_embedding
        same_speaker = self.feature_dropout(self.same_speaker_embeddings) @ speaker.t()
        distances = self.feature_dropout(self.distance_embeddings) @ distance.t()
        # Shared by all pairs: the input layer's products with spans, and with pairs of features.
        span_products = torch.addmm(bias, top_spans.representations(), span.t())
        feature_products = (same_speaker.unsqueeze(1) + distances).flatten(0, 1)
        of_antecedent, of_product = (
            each.split(self.part_dims, dim=1) for each in (antecedent, product)
        )
        weights = list(zip(of_antecedent, of_product))
        num_top_spans = len(top_spans.starts)
        for first in range(0, num_top_spans, _SPANS_AT_ONCE):
            spans = slice(first, min(first + _SPANS_AT_ONCE, num_top_spans))
            antecedents = slice(max(0, first - self.max_antecedents), spans.stop - 1)
            products = (span_products[spans], feature_products)
            yield self._block(top_spans, spans, antecedents, weights, *products)

    def _block(
        self,
        top_spans: TopSpans,
        spans: slice,
        antecedents: slice,
        weights: Sequence[Tuple[torch.Tensor, torch.Tensor]],
        span_products: torch.Tensor,
        feature_products: torch.Tensor,
    ) -> AntecedentScores:
        """`weights` are the ones of an antecedent and of a product, for each part of a span."""
        numbers = torch.arange(len(top_spans.starts), device=top_spans.scores.device)
        # Shape: (num_antecedents, num_spans)
        distances = numbers[spans] - numbers[antecedents].unsqueeze(1)
        same_speaker = top_spans.speakers[spans] == top_spans.speakers[antecedents].unsqueeze(1)
        # No buffer, in which `to_empty` would leave other numbers.
        table = torch.tensor(BUCKETS, device=distances.device)
        buckets = table[distances.clamp(1, len(BUCKETS)) - 1]
        tables = [feature_products]
        rows = [same_speaker.long() * len(_DISTANCES) + buckets]
        for part, tokens in enumerate((top_spans.starts, top_spans.ends)):
            span_tokens, span_rows = tokens[spans].unique(return_inverse=True)
            antecedent_tokens, antecedent_rows = tokens[antecedents].unique(return_inverse=True)
            pairs = pair_products(
                top_spans.encoded.index_select(0, span_tokens),
                top_spans.encoded.index_select(0, antecedent_tokens),
                *weights[part],
            )
            pair_rows = antecedent_rows.unsqueeze(1) * len(span_tokens) + span_rows
            rows.append(sum(map(len, tables)) + pair_rows)
            tables.append(pairs.flatten(0, 1))
        # Shape: (num_antecedents * num_spans, feedforward_dim)
        sums = embedding_bag(torch.stack(rows, dim=2).flatten(0, 1), torch.cat(tables), mode="sum")
        others = pair_products(
            top_spans.heads_and_widths[spans],
            top_spans.heads_and_widths[antecedents],
            *weights[2],
            span_products,
        )
        scores = self.feedforward(others + sums.view_as(others))
        scores = scores + top_spans.scores[spans] + top_spans.scores[antecedents].unsqueeze(1)
        impossible = (distances < 1) | (distances > self.max_antecedents)
        scores = scores.masked_fill(impossible, float("-inf"))
        no_antecedent = scores.new_zeros(1, scores.size(1))
        return AntecedentScores(spans, antecedents, torch.cat([no_antecedent, scores]))


def loss(block: AntecedentScores, clusters: torch.Tensor) -> torch.Tensor:
    """
    The negative log of the summed probability of gold antecedents, summed over the spans of a block
    (Lee et al. 2017, equation 5). "No antecedent" is gold for a span with no gold antecedent among
    its candidates. `clusters`, shape `(num_top_spans,)`, holds gold clusters, -1 for no mention.
    """
    own, earlier = clusters[block.spans], clusters[block.antecedents]
    gold = (earlier.unsqueeze(1) == own) & (own >= 0) & (block.scores[1:] > float("-inf"))
    # Shape: (1 + num_antecedents, num_spans)
    gold = torch.cat([~gold.any(dim=0, keepdim=True), gold])
    of_gold = block.scores.masked_fill(~gold, float("-inf")).logsumexp(dim=0)
    return (block.scores.logsumexp(dim=0) - of_gold).sum()


def best_antecedents(block: AntecedentScores) -> torch.Tensor:
    """The index of each span's best antecedent among top spans; its own index if it has none."""
    best = block.scores.argmax(dim=0)
    own = torch.arange(block.spans.start, block.spans.stop, device=best.device)
    return torch.where(best > 0, best - 1 + block.antecedents.start, own)


def clusters_from(antecedents: torch.Tensor) -> List[List[int]]:
    """Clusters of linked spans, by index; no single spans. See `best_antecedents` for the input."""
    clusters: List[List[int]] = []
    cluster_of: List[List[int]] = []
    for number, antecedent in enumerate(antecedents.tolist()):
        if antecedent == number:
            clusters.append([])
            cluster_of.append(clusters[-1])
        else:
            # An antecedent comes before its span.
            cluster_of.append(cluster_of[antecedent])
        cluster_of[number].append(number)
    return [cluster for cluster in clusters if len(cluster) > 1]


def pair_products(
    vectors: torch.Tensor,
    others: torch.Tensor,
    other_weight: torch.Tensor,
    product_weight: torch.Tensor,
    biases: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """
    A linear layer over `[other; vector * other]` for each pair: `other_weight @ other +
    product_weight @ (vector * other) + bias`, shape `(num_others, num_vectors, hidden_dim)`.

    Multiplies `others` by one matrix per vector, `other_weight + product_weight * vector`. This is
    faster than elementwise products of all pairs, and needs much less memory. The backward pass
    computes these matrices again. `biases` has one row per vector.
    """
    return _PairProducts.apply(vectors, others, other_weight, product_weight, biases)


class _PairProducts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        vectors: torch.Tensor,
        others: torch.Tensor,
        other_weight: torch.Tensor,
        product_weight: torch.Tensor,
        biases: Optional[torch.Tensor],
    ) -> torch.Tensor:
        ctx.save_for_backward(vectors, others, other_weight, product_weight)
        weights = _weights(vectors, other_weight, product_weight).flatten(0, 1)
        if biases is None:
            sums = others @ weights.t()
        else:
            sums = torch.addmm(biases.flatten(), others, weights.t())
        return sums.view(len(others), len(vectors), len(other_weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        vectors, others, other_weight, product_weight = ctx.saved_tensors
        gradient_of_biases = gradient.sum(dim=0) if ctx.needs_input_grad[4] else None
        # Shape: (num_others, num_vectors * hidden_dim)
        gradient = gradient.flatten(1)
        # Shape: (num_vectors, hidden_dim, dim)
        weights = _weights(vectors, other_weight, product_weight)
        gradient_of_others = gradient @ weights.flatten(0, 1)
        gradient_of_weights = (gradient.t() @ others).view_as(weights)
        # Reuses the buffer of the weights: allocating a new one takes as long as the arithmetic.
        torch.mul(gradient_of_weights, vectors.unsqueeze(1), out=weights)
        gradient_of_product = weights.sum(dim=0)
        gradient_of_other = gradient_of_weights.sum(dim=0)
        gradient_of_vectors = gradient_of_weights.mul_(product_weight).sum(dim=1)
        of_weights = (gradient_of_other, gradient_of_product)
        return (gradient_of_vectors, gradient_of_others, *of_weights, gradient_of_biases)


def _weights(
    vectors: torch.Tensor, other_weight: torch.Tensor, product_weight: torch.Tensor
) -> torch.Tensor:
    """Shape `(num_vectors, hidden_dim, dim)`."""
    return torch.addcmul(other_weight, vectors.unsqueeze(1), product_weight)
