from typing import Iterator, List, NamedTuple, Sequence

import torch
from torch.nn.functional import embedding_bag

from elmo_plugin.tasks.coref.pair_products import pair_products
from elmo_plugin.tasks.coref.scoring import ScoringLayers, ScoringSettings

# Where a bucket of distances begins: 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63, 64 and more.
_DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)
# Spans whose antecedents are scored in one product: many for its speed, few for its memory.
_SPANS_AT_ONCE = 16


class KeptSpans(NamedTuple):
    """
    The spans of a document that may be mentions, by position.

    # Parameters

    encoded : `torch.Tensor`
        Shape `(num_tokens, encoded_dim)`.
    starts, ends : `torch.Tensor`
        Shape `(num_kept,)`. Positions among these of each span's first and last token.
    others : `torch.Tensor`
        Shape `(num_kept, other_dim)`. What a span's vector has besides both tokens.
    scores : `torch.Tensor`
        Shape `(num_kept,)`. How much like a mention each is.
    speakers : `torch.Tensor`
        Shape `(num_kept,)`. The number of each one's speaker.
    genre : `torch.Tensor`
        Shape `()`. That of the document.
    """

    encoded: torch.Tensor
    starts: torch.Tensor
    ends: torch.Tensor
    others: torch.Tensor
    scores: torch.Tensor
    speakers: torch.Tensor
    genre: torch.Tensor

    def vectors(self) -> torch.Tensor:
        """Shape `(num_kept, 2 * encoded_dim + other_dim)`."""
        return torch.cat([self.encoded[self.starts], self.encoded[self.ends], self.others], dim=1)


class Block(NamedTuple):
    """
    Scores of some spans that follow one another.

    # Parameters

    spans, antecedents : `slice`
        Which of the kept spans these are, and which may come before one of them.
    scores : `torch.Tensor`
        Shape `(1 + num_antecedents, num_spans)`. First 0, the score of having no antecedent; -inf
        for one that is not before the span, or too far before it.
    """

    spans: slice
    antecedents: slice
    scores: torch.Tensor


class AntecedentScorer(torch.nn.Module):
    """
    How likely a span is to speak of what an earlier one speaks of: s_m(i) + s_m(j) + s_a(i, j)
    (Lee et al. 2017, equations 2 to 4), where s_a reads both vectors, their elementwise product,
    whether both have the same speaker, their distance in kept spans, and the genre.

    What s_a reads is never laid out for all pairs. In its first layer the product of a span's own
    vector is computed once per span, that of features once per value; and of the spans that begin,
    or end, at one token, those of the antecedent and of the elementwise product once for all.

    # Parameters

    encoded_dim, other_dim : `int`
        Widths of a token, and of what a span's vector has besides its first and last token.
    num_genres : `int`
        Genres, with those of the vocabulary's first entries, which no document of training has.
    settings : `ScoringSettings`
    """

    def __init__(
        self, encoded_dim: int, other_dim: int, num_genres: int, settings: ScoringSettings
    ) -> None:
        super().__init__()
        self.max_antecedents = settings.max_antecedents
        feature_dim = settings.feature_dim
        self.same_speaker_features = _features(2, feature_dim)
        self.distance_features = _features(len(_DISTANCES), feature_dim)
        self.genre_features = _features(num_genres, feature_dim)
        with torch.no_grad():
            # An unknown genre says nothing.
            self.genre_features[:2] = 0.0
        self.feature_dropout = torch.nn.Dropout(settings.dropout)
        self.part_dims = [encoded_dim, encoded_dim, other_dim]
        self.layers = ScoringLayers([sum(self.part_dims)] * 3 + [feature_dim] * 3, settings)
        nearest = torch.tensor(_DISTANCES)
        buckets = torch.bucketize(torch.arange(1, nearest[-1] + 1), nearest, right=True) - 1
        self.register_buffer("_buckets", buckets, persistent=False)

    def forward(self, kept: KeptSpans) -> Iterator[Block]:
        """
        # Parameters

        kept : `KeptSpans`

        # Returns

        `Iterator[Block]`
            All spans, in order. Memory does not grow with their number where nothing is learned and
            blocks are not kept.
        """
        products = self._products(kept)
        num_kept = len(kept.starts)
        for first in range(0, num_kept, _SPANS_AT_ONCE):
            spans = slice(first, min(first + _SPANS_AT_ONCE, num_kept))
            antecedents = slice(max(0, first - self.max_antecedents), spans.stop - 1)
            yield self._block(kept, spans, antecedents, products)

    def _products(self, kept: KeptSpans) -> "_Products":
        weights = self.layers.first_weights()
        of_span, of_antecedent, of_product, of_speaker, of_distance, of_genre = weights
        genre = self.feature_dropout(self.genre_features[kept.genre])
        bias = self.layers.first.bias + of_genre @ genre
        same_speaker = self.feature_dropout(self.same_speaker_features) @ of_speaker.t()
        distance = self.feature_dropout(self.distance_features) @ of_distance.t()
        return _Products(
            of_antecedent.split(self.part_dims, dim=1),
            of_product.split(self.part_dims, dim=1),
            torch.addmm(bias, kept.vectors(), of_span.t()),
            (same_speaker.unsqueeze(1) + distance).flatten(0, 1),
        )

    def _block(
        self, kept: KeptSpans, spans: slice, antecedents: slice, products: "_Products"
    ) -> Block:
        numbers = torch.arange(len(kept.starts), device=kept.scores.device)
        # Shape: (num_antecedents, num_spans)
        distances = numbers[spans] - numbers[antecedents].unsqueeze(1)
        same_speaker = kept.speakers[spans] == kept.speakers[antecedents].unsqueeze(1)
        buckets = self._buckets[distances.clamp(1, len(self._buckets)) - 1]
        tables = [products.of_features]
        rows = [same_speaker.long() * len(_DISTANCES) + buckets]
        for part, tokens in enumerate((kept.starts, kept.ends)):
            ours, our_rows = tokens[spans].unique(return_inverse=True)
            theirs, their_rows = tokens[antecedents].unique(return_inverse=True)
            pairs = pair_products(
                kept.encoded.index_select(0, ours),
                kept.encoded.index_select(0, theirs),
                products.of_antecedent[part],
                products.of_product[part],
            )
            rows.append(sum(map(len, tables)) + their_rows.unsqueeze(1) * len(ours) + our_rows)
            tables.append(pairs.flatten(0, 1))
        # Shape: (num_antecedents * num_spans, feedforward_dim)
        sums = embedding_bag(torch.stack(rows, dim=2).flatten(0, 1), torch.cat(tables), mode="sum")
        others = pair_products(
            kept.others[spans],
            kept.others[antecedents],
            products.of_antecedent[2],
            products.of_product[2],
            products.of_span[spans],
        )
        scores = self.layers.rest(others + sums.view_as(others))
        scores = scores + kept.scores[spans] + kept.scores[antecedents].unsqueeze(1)
        impossible = (distances < 1) | (distances > self.max_antecedents)
        scores = scores.masked_fill(impossible, float("-inf"))
        none = scores.new_zeros(1, scores.size(1))
        return Block(spans, antecedents, torch.cat([none, scores]))


class _Products(NamedTuple):
    """
    The first layer as far as it does not depend on pairs: weights of the parts of a span's vector
    in the antecedent and in the elementwise product; products of each span, shape
    `(num_kept, feedforward_dim)`; and of same speaker and distance together.
    """

    of_antecedent: Sequence[torch.Tensor]
    of_product: Sequence[torch.Tensor]
    of_span: torch.Tensor
    of_features: torch.Tensor


def _features(number: int, dim: int) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(number, dim)))


def loss(block: Block, clusters: torch.Tensor) -> torch.Tensor:
    """
    The negative log-likelihood of all gold antecedents together, summed over the spans of a block
    (Lee et al. 2017, equation 5). A span without any, because it is no mention, the first of its
    cluster, or none of the others was kept, should have none.

    # Parameters

    block : `Block`
    clusters : `torch.Tensor`
        Shape `(num_kept,)`. The gold cluster of each kept span, -1 for no mention.

    # Returns

    `torch.Tensor`
        Shape `()`.
    """
    own, others = clusters[block.spans], clusters[block.antecedents]
    gold = (others.unsqueeze(1) == own) & (own >= 0) & (block.scores[1:] > float("-inf"))
    # Shape: (1 + num_antecedents, num_spans)
    gold = torch.cat([~gold.any(dim=0, keepdim=True), gold])
    of_gold = block.scores.masked_fill(~gold, float("-inf")).logsumexp(dim=0)
    return (block.scores.logsumexp(dim=0) - of_gold).sum()


def best_antecedents(block: Block) -> torch.Tensor:
    """
    The likeliest antecedent of each span of a block, shape `(num_spans,)`: its position among the
    kept spans, or its own where none is likelier.
    """
    best = block.scores.argmax(dim=0)
    own = torch.arange(block.spans.start, block.spans.stop, device=best.device)
    return torch.where(best > 0, best - 1 + block.antecedents.start, own)


def clusters_from(antecedents: torch.Tensor) -> List[List[int]]:
    """
    # Parameters

    antecedents : `torch.Tensor`
        Shape `(num_kept,)`. The position of each span's antecedent, its own if it has none.

    # Returns

    `List[List[int]]`
        Positions of spans that are linked, directly or not; no single ones.
    """
    while True:
        # Twice as far back each time, until nobody has anyone before them.
        further = antecedents[antecedents]
        if torch.equal(further, antecedents):
            break
        antecedents = further
    clusters = {}
    for number, first in enumerate(antecedents.tolist()):
        clusters.setdefault(first, []).append(number)
    return [cluster for cluster in clusters.values() if len(cluster) > 1]
