"""Exact search by cosine in a matrix that may be larger than memory."""

from typing import Callable, Sequence, Tuple

import numpy
import torch

# Rows are converted to float32 and multiplied in parts of this size, which the processor's cache
# holds.
_CACHED_BYTES = 2**20
# Parts whose products are compared at once: the time of a comparison hardly depends on its size.
_CACHED_PER_BLOCK = 32
_ROWS_PER_CHECK = 8192

#: First row and last row (exclusive).
Rows = Tuple[int, int]


class NearestRows:
    """
    The `number` rows nearest to a query by cosine among those added, without the `excluded` ones.
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
        excluded: Sequence[Rows] = (),
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
        return self.cosines[-1] - self._tolerance if len(self.rows) == self._number else -numpy.inf

    def add_block(self, products: numpy.ndarray, first: int) -> None:
        """Adds the rows from `first` on, in order; overwrites their `products` with the query."""
        for start, end in self._excluded:
            products[max(0, start - first) : max(0, end - first)] = -numpy.inf
        threshold = self.threshold
        if len(products) > self._number:
            # A row whose product is 2 tolerances below `number` others is not nearer.
            reached = numpy.partition(products, -self._number)[-self._number]
            threshold = max(threshold, reached - 2 * self._tolerance)
        self.add_rows(numpy.flatnonzero(products >= threshold) + first)

    def add_rows(self, rows: numpy.ndarray) -> None:
        """Adds rows by number, shape `(num_rows,)`, ascending and above all rows added before."""
        for start, end in self._excluded:
            rows = rows[(rows < start) | (rows >= end)]
        for start in range(0, len(rows), _ROWS_PER_CHECK):
            part = rows[start : start + _ROWS_PER_CHECK]
            # Shape: (num_rows, dim)
            units = _unit(self._vectors[part].astype("f8"))
            # Each row is summed alone, so that its sum does not depend on the others.
            cosines = numpy.concatenate([self.cosines, (units * self.query).sum(axis=1)])
            rows_so_far = numpy.concatenate([self.rows, part])
            best = numpy.argsort(-cosines, kind="stable")[: self._number]
            self.rows, self.cosines = rows_so_far[best], cosines[best]


def search(
    vectors: numpy.ndarray,
    nearest: Sequence[NearestRows],
    rows_per_block: int = 0,
    on_progress: Callable[[int], object] = lambda num_rows: None,
) -> None:
    """
    Compares all rows of `vectors` with all queries, in one pass. `nearest` have the same vectors.
    Products are compared after each block of `rows_per_block` rows (0: as many rows as take 32 MB
    in float32). `on_progress` is called with the number of rows done since the last call.
    """
    num_rows, dim = vectors.shape
    rows_per_product = max(1, _CACHED_BYTES // (4 * dim))
    rows_per_block = rows_per_block or _CACHED_PER_BLOCK * rows_per_product
    # Shape: (num_queries, dim)
    queries = torch.from_numpy(numpy.stack([each.query for each in nearest])).float()
    thresholds = numpy.full(len(nearest), -numpy.inf)
    rows, single = torch.from_numpy(vectors), torch.empty(rows_per_product, dim)
    for first in range(0, num_rows, rows_per_block):
        block = rows[first : first + rows_per_block]
        # Shape: (num_queries, num_rows of the block)
        products = torch.empty(len(queries), len(block))
        for chunk, part in zip(
            block.split(rows_per_product), products.split(rows_per_product, dim=1)
        ):
            torch.mm(queries, single[: len(chunk)].copy_(chunk).T, out=part)
        for number in numpy.flatnonzero(products.amax(dim=1).numpy() >= thresholds).tolist():
            nearest[number].add_block(products[number].numpy(), first)
            thresholds[number] = nearest[number].threshold
        on_progress(len(block))


def _unit(vectors: numpy.ndarray) -> numpy.ndarray:
    norms = numpy.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return vectors / numpy.maximum(norms, numpy.finfo("f8").tiny)
