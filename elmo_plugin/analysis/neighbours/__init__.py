"""The nearest contexts of a word in a sentence: Peters et al. (2018), section 5.3 and table 4."""

from elmo_plugin.analysis.neighbours.build import IndexOptions, IndexSummary, build_index
from elmo_plugin.analysis.neighbours.context_index import ContextIndex
from elmo_plugin.analysis.neighbours.query import (
    Neighbour,
    Neighbours,
    Query,
    find_neighbours,
    read_query,
)

__all__ = [
    "ContextIndex",
    "IndexOptions",
    "IndexSummary",
    "Neighbour",
    "Neighbours",
    "Query",
    "build_index",
    "find_neighbours",
    "read_query",
]
