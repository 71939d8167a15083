import re
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

from elmo_plugin.analysis.neighbours.context_index import ContextIndex
from elmo_plugin.analysis.neighbours.nearest_rows import NearestRows, search
from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.token_batches import groups
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.html import marked_words, paragraphs, table

_MARKED = re.compile(r"\[(.+)\]")
# Queries whose products with a block of the index are in memory at once.
_QUERIES_PER_PASS = 512


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


class Neighbours(Dict[int, List[Neighbour]]):
    """Contexts by number of the layer, the nearest first. A notebook shows them as tables."""

    def to_json(self) -> Dict[str, List[Dict[str, Any]]]:
        """The fields of each context, for JSON."""
        return {str(layer): list(map(asdict, contexts)) for layer, contexts in self.items()}

    def _repr_html_(self) -> str:
        return "".join(
            paragraphs(f"layer {layer}")
            + table(
                ("cosine", "line", "context"),
                (
                    (
                        f"{each.cosine:.4f}",
                        str(each.line),
                        marked_words(each.words, [(each.position, each.position, "")]),
                    )
                    for each in contexts
                ),
            )
            for layer, contexts in self.items()
        )


def read_query(sentence: str, location: str = "") -> Query:
    """Reads `the [bank] of the river`. Raises `ValueError` unless one word is in brackets."""
    words = sentence.split()
    marked = [position for position, word in enumerate(words) if _MARKED.fullmatch(word)]
    if len(marked) != 1:
        raise ValueError(
            f"{f'{location}: ' if location else ''}expected one word in brackets, as in `the "
            f"[bank] of the river`, found {len(marked)} in {sentence!r}."
        )
    (position,) = marked
    words[position] = words[position][1:-1]
    return Query(tuple(words), position)


def find_neighbours(
    index: ContextIndex,
    bilm: Bilm,
    queries: Iterable[Query],
    number: int = 5,
    same_word: bool = False,
    on_progress: Callable[[int], object] = lambda num_contexts: None,
) -> Iterator[Neighbours]:
    """
    Finds the contexts nearest to words in their sentences, by cosine, in each layer of an index.
    The search is exact apart from the half precision of the index. One pass over the index compares
    up to 512 queries. Memory grows with the queries in a pass, not with the index.

    Yields one result per query, in order. Contexts of equal cosine are in the order of the text.
    Contexts in the query's own sentence are left out, wherever it is in the text. `on_progress` is
    called with the number of contexts done since the last call, counted per pass and layer.
    `same_word` finds contexts of the same word only, without calls of `on_progress`.

    Raises `ConfigurationError` if the index was built with another biLM, or `number` is below 1.
    """
    index.check_bilm(bilm)
    if number < 1:
        raise ConfigurationError(f"Expected `number` of at least 1, found {number}.")
    for group in groups(queries, lambda query: 1, None, _QUERIES_PER_PASS):
        yield from _one_pass(index, bilm, group, number, same_word, on_progress)


def _one_pass(
    index: ContextIndex,
    bilm: Bilm,
    queries: List[Query],
    number: int,
    same_word: bool,
    on_progress: Callable[[int], object],
) -> List[Neighbours]:
    # One sentence per batch: in larger batches, rounding depends on the other sentences.
    embedded = embed_sentences(bilm, [query.words for query in queries], batch_size=1)
    # Shape of each: (num_layers, dim)
    vectors = [
        layers[:, query.position].float().numpy() for query, layers in zip(queries, embedded)
    ]
    own = [index.rows_of_sentence(query.words) for query in queries]
    found = [Neighbours() for _ in queries]
    for layer, rows in index.layers.items():
        nearest = [
            NearestRows(rows, vector[layer], number, excluded)
            for vector, excluded in zip(vectors, own)
        ]
        if same_word:
            for query, each in zip(queries, nearest):
                each.add_rows(index.rows_of_word(query.words[query.position]))
        else:
            search(rows, nearest, on_progress=on_progress)
        for neighbours, each in zip(found, nearest):
            neighbours[layer] = [
                Neighbour(cosine, *index.context(row))
                for row, cosine in zip(each.rows.tolist(), each.cosines.tolist())
            ]
    return found
