"""
Seconds of a query of `elmo neighbours`: running the biLM on its sentence, searching all vectors of
an index, and reading the contexts found. `peer` is one product of a float32 matrix of the index's
size, in RAM, with the vectors of the queries, with the same number of threads.

    python benchmarks/neighbours.py
    python benchmarks/neighbours.py --contexts 100000 --output results.json

Needs no corpus. The index has random vectors of one layer in half precision, memory-mapped and in
the page cache. With two million contexts of the biLM that ships, it takes 1 GB, the matrix 2 GB.
"""

import statistics
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Iterator, List

import numpy
import torch
from common import Row, by_turns, measuring_parser, report

from elmo_plugin import Bilm, load_bilm
from elmo_plugin.analysis.context_index import (
    FORMAT_VERSION,
    IndexWriter,
    bilm_settings,
)
from elmo_plugin.analysis.neighbours import ContextIndex, Query, find_neighbours

FLOOR = "<= 1.5x"
NUM_QUERIES = (1, 20)
SENTENCE = [f"w{number}" for number in range(20)]
SENTENCES_PER_COMMIT = 5000


def write_index(folder: Path, bilm: Bilm, num_contexts: int) -> None:
    settings = {
        "format_version": FORMAT_VERSION,
        **bilm_settings(bilm),
        "computed_in": "float32",
        "layers": [bilm.num_layers - 1],
        "dim": bilm.output_dim,
    }
    generator = numpy.random.default_rng(0)
    num_sentences = num_contexts // len(SENTENCE)
    with closing(IndexWriter(folder, settings, force=False)) as writer:
        for first in range(0, num_sentences, SENTENCES_PER_COMMIT):
            number = min(SENTENCES_PER_COMMIT, num_sentences - first)
            shape = (number, 1, len(SENTENCE), bilm.output_dim)
            vectors = generator.standard_normal(shape, dtype="f4")
            vectors /= numpy.linalg.norm(vectors, axis=-1, keepdims=True)
            for line, layers in enumerate(vectors, start=first + 1):
                writer.add(line, SENTENCE, layers)
            writer.commit(num_lines=first + number)
        writer.commit(complete=True)


def make_queries(number: int) -> List[Query]:
    return [Query(("They", "walked", "along", f"bank{each}", "."), 3) for each in range(number)]


def measure(num_contexts: int, turns: int) -> Iterator[Row]:
    bilm = load_bilm()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory, "index")
        write_index(folder, bilm, num_contexts)
        index = ContextIndex(folder)
        (half,) = index.layers.values()
        matrix = torch.from_numpy(half).float()
        for number in NUM_QUERIES:
            queries, vectors = make_queries(number), torch.randn(bilm.output_dim, number)
            runs = {
                "ours": lambda _, asked=queries: list(find_neighbours(index, bilm, asked)),
                "product": lambda _, asked=vectors: matrix @ asked,
            }
            with torch.inference_mode():
                seconds = by_turns(runs, turns)
            yield Row(
                f"Neighbours of {number} word{'s' if number > 1 else ''}, {len(matrix):,} contexts",
                "s",
                statistics.median(seconds["ours"]),
                statistics.median(seconds["product"]),
                # With more words, running the biLM takes longer than the product.
                floor=FLOOR if number == 1 else None,
            )


def main() -> None:
    parser = measuring_parser(__doc__, turns=5)
    parser.add_argument("--contexts", type=int, default=2_000_000, help="default 2,000,000")
    arguments = parser.parse_args()
    report(measure(arguments.contexts, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
