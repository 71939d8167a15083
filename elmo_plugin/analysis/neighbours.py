"""The nearest contexts of a word in a sentence: Peters et al. (2018), section 5.3 and table 4."""

import re
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy
import torch

from elmo_plugin.analysis.context_index import ContextIndex, IndexSummary, build_index
from elmo_plugin.bilm import Bilm
from elmo_plugin.corpora.tokenizer import tokenizer_of
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.token_batches import groups
from elmo_plugin.util.errors import unexpected

__all__ = [
    "ContextIndex",
    "IndexSummary",
    "Neighbour",
    "Neighbours",
    "Query",
    "build_index",
    "find_neighbours",
    "read_query",
]

_MARKED = re.compile(r"\[(.+)\]")
_MARKED_IN_RAW = re.compile(r"\[([^\[\]\s]+)\]")
# Queries whose products with a block of the index are in memory at once.
_QUERIES_PER_PASS = 512
# Rows are converted to float32 and multiplied in parts of this size, which the processor's cache
# holds.
_CACHED_BYTES = 2**20
# Parts whose products are compared at once: the time of a comparison hardly depends on its size.
_CACHED_PER_BLOCK = 32


@dataclass(frozen=True)
class Query:
    """A word in its sentence."""

    words: Tuple[str, ...]
    #: The word's position, from 0.
    position: int


@dataclass(frozen=True)
class Neighbour:
    """A context of the indexed text."""

    cosine: float
    #: Number of the line in the text, from 1.
    line: int
    #: Position in the words of that line, from 0.
    position: int
    words: Tuple[str, ...]


#: Contexts by number of the layer, the nearest first.
Neighbours = Dict[int, List[Neighbour]]


def to_json(neighbours: Neighbours) -> Dict[str, List[Dict[str, Any]]]:
    """The fields of each context, for JSON."""
    return {str(layer): list(map(asdict, contexts)) for layer, contexts in neighbours.items()}


def read_query(sentence: str, location: str = "", tokenize: Optional[str] = None) -> Query:
    """
    Reads `the [bank] of the river`; with a language for `tokenizer_of`, raw text such as `He saw
    the [bank].` Raises `ValueError` unless one word is in brackets.
    """
    if tokenize is not None:
        return _read_raw_query(sentence, location, tokenize)
    words = sentence.split()
    marked = [position for position, word in enumerate(words) if _MARKED.fullmatch(word)]
    if len(marked) != 1:
        raise _not_one_word(sentence, location, len(marked))
    (position,) = marked
    words[position] = words[position][1:-1]
    return Query(tuple(words), position)


def _read_raw_query(sentence: str, location: str, tokenize: str) -> Query:
    before, *marked = _MARKED_IN_RAW.split(sentence)
    if len(marked) != 2:
        raise _not_one_word(sentence, location, len(marked) // 2)
    words = tokenizer_of(tokenize)(before + "".join(marked))
    # The words have all characters but white space.
    start = len("".join(before.split()))
    ends = accumulate(map(len, words))
    for position, (word, end) in enumerate(zip(words, ends)):
        if word == marked[0] and end - len(word) == start:
            return Query(tuple(words), position)
    found = " ".join(words)
    raise unexpected(location, f"{marked[0]!r} to be one of the words of {tokenize}", found)


def _not_one_word(sentence: str, location: str, number: int) -> ValueError:
    expected = "one word in brackets, as in `the [bank] of the river`"
    return unexpected(location, expected, f"{number} in {sentence!r}")


def find_neighbours(
    index: ContextIndex,
    bilm: Bilm,
    queries: Iterable[Query],
    number: int = 5,
    on_progress: Callable[[int], object] = lambda num_contexts: None,
) -> Iterator[Neighbours]:
    """
    Finds the contexts nearest to words in their sentences, by cosine, in each layer of an index.
    The search is exact apart from the half precision of the index. One pass over the index compares
    up to 512 queries. Memory grows with the queries in a pass, not with the index.

    Yields one result per query, in order. Contexts of equal cosine are in the order of the text.
    Contexts in the query's own sentence are left out, wherever it is in the text. `on_progress` is
    called with the number of contexts done since the last call, counted per pass and layer.

    Raises `ConfigurationError` if the index was built with another biLM.
    """
    index.check_bilm(bilm)
    for group in groups(queries, lambda query: 1, None, _QUERIES_PER_PASS):
        yield from one_pass(index, bilm, group, number, on_progress)


def one_pass(
    index: ContextIndex,
    bilm: Bilm,
    queries: List[Query],
    number: int,
    on_progress: Callable[[int], object] = lambda num_contexts: None,
) -> List[Neighbours]:
    """Like `find_neighbours`, without checking the biLM, and with all queries in one pass."""
    # One sentence per batch: in larger batches, rounding depends on the other sentences.
    embedded = embed_sentences(bilm, [query.words for query in queries], batch_size=1)
    # Shape of each: (num_layers, dim)
    vectors = [
        layers[:, query.position].float().numpy() for query, layers in zip(queries, embedded)
    ]
    own = [index.rows_of_sentence(query.words) for query in queries]
    found: List[Neighbours] = [{} for _ in queries]
    for layer, rows in index.layers.items():
        nearest = [
            NearestRows(rows, vector[layer], number, excluded)
            for vector, excluded in zip(vectors, own)
        ]
        search(rows, nearest, on_progress)
        for neighbours, each in zip(found, nearest):
            neighbours[layer] = [
                Neighbour(cosine, *index.context(row))
                for row, cosine in zip(each.rows.tolist(), each.cosines.tolist())
            ]
    return found


class NearestRows:
    """
    The `number` rows nearest to a query by cosine among those added, without those from the first
    to the last row (exclusive) of each range in `excluded`.
    `vectors` have shape `(num_rows, dim)`, half precision, and length 1 before they were rounded.
    The query has shape `(dim,)` and any length.

    Products in float32 select the rows that can be among the nearest. These are computed again in
    float64, so results are exact and do not depend on how the products were divided.
    """

    def __init__(
        self,
        vectors: numpy.ndarray,
        query: numpy.ndarray,
        number: int,
        excluded: Sequence[Tuple[int, int]] = (),
    ) -> None:
        self._vectors, self._number, self._excluded = vectors, number, excluded
        self.query = _unit(query.astype("f8")[None])[0]
        #: In descending order of their cosines, rows of equal cosines in their own order.
        self.rows = numpy.zeros(0, "i8")
        self.cosines = numpy.zeros(0)
        # A bound on the rounding error of a product: half-precision rows, float32 query and sums.
        self._tolerance = 2.0**-10 + len(self.query) * 2.0**-23

    @property
    def threshold(self) -> float:
        """Rows with a lower product cannot be among the nearest."""
        # All products of vectors of length 1 are above -2.
        return self.cosines[-1] - self._tolerance if len(self.rows) == self._number else -2.0

    def add_block(self, products: numpy.ndarray, first: int) -> None:
        """Adds the rows from `first` on, above those before; overwrites their `products`."""
        for start, end in self._excluded:
            products[max(0, start - first) : max(0, end - first)] = -numpy.inf
        threshold = self.threshold
        if len(products) > self._number:
            # A row whose product is 2 tolerances below `number` others is not nearer.
            reached = numpy.partition(products, -self._number)[-self._number]
            threshold = max(threshold, reached - 2 * self._tolerance)
        rows = numpy.flatnonzero(products >= threshold) + first
        # Shape: (num_rows, dim)
        units = _unit(self._vectors[rows].astype("f8"))
        # Each row is summed alone, so that its sum does not depend on the others.
        cosines = numpy.concatenate([self.cosines, (units * self.query).sum(axis=1)])
        rows = numpy.concatenate([self.rows, rows])
        best = numpy.argsort(-cosines, kind="stable")[: self._number]
        self.rows, self.cosines = rows[best], cosines[best]


def search(
    vectors: numpy.ndarray,
    nearest: Sequence[NearestRows],
    on_progress: Callable[[int], object] = lambda num_rows: None,
) -> None:
    """Compares all rows with all queries in one pass. `on_progress` gets numbers of rows."""
    num_rows, dim = vectors.shape
    rows_per_product = max(1, _CACHED_BYTES // (4 * dim))
    rows_per_block = _CACHED_PER_BLOCK * rows_per_product
    # Shape: (num_queries, dim)
    queries = torch.from_numpy(numpy.stack([each.query for each in nearest])).float()
    rows, single = torch.from_numpy(vectors), torch.empty(rows_per_product, dim)
    for first in range(0, num_rows, rows_per_block):
        block = rows[first : first + rows_per_block]
        # Shape: (num_queries, num_rows of the block)
        products = torch.empty(len(queries), len(block))
        for chunk, part in zip(
            block.split(rows_per_product), products.split(rows_per_product, dim=1)
        ):
            torch.mm(queries, single[: len(chunk)].copy_(chunk).T, out=part)
        for each, of_query in zip(nearest, products.numpy()):
            if of_query.max() >= each.threshold:
                each.add_block(of_query, first)
        on_progress(len(block))


def _unit(vectors: numpy.ndarray) -> numpy.ndarray:
    norms = numpy.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return vectors / numpy.maximum(norms, numpy.finfo("f8").tiny)
