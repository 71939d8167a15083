"""
Processor time per token and peak RAM for texts of increasing size, from 10,000 tokens on: whether
the time per token is constant and RAM is bounded.

    python benchmarks/scale.py                             # $ELMO_DATA/lm/large/train-*.txt.gz
    python benchmarks/scale.py --tokens 10000 100000 1000000 10000000 --plot scale.svg
    python benchmarks/scale.py text.txt --part embed --tokens 1000 2000 --output results.json

Needs Linux and a tokenised text, one sentence per line; one that is too short is repeated. The biLM
is the tiny one of `fixtures/bilm`, and the trained one is as tiny, so that mostly the reading,
batching and writing around a biLM are measured. The layers in the cache are random, 128 numbers per
token. The parts are:

- embed: `elmo embed --top --forget-sentences` into HDF5;
- cache: ELMo's cache of layers, written in the order of the text and read in another one;
- train: `experiments/bilm_small.jsonnet`, shrunk, for one epoch; counting words is included;
- neighbours: `elmo neighbours build`, and one query.

Each measurement is a separate process, with 1,000 tokens as a warm-up. `peer` is the next smaller
text. Time is processor time, which other programs change less than elapsed time; `of limit` is its
share of the elapsed time: the rest is waiting for the disk or for other programs. RAM is what is
added to a process that has imported all packages, without the pages of mapped files, which the
system can take back.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from itertools import chain, islice, tee
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence

import numpy
import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from common import Row, measuring_parser, read_rows, report
from memory import child_process, resident

from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.main import main as elmo
from elmo_plugin.corpora import sentence_per_line
from elmo_plugin.elmo.cache.layer_cache import LayerCache
from elmo_plugin.util.plotting import COLOURS, MARKERS, new_figure, save_picture

TOKENS = (10_000, 100_000, 1_000_000)
WARM_UP = 1_000
WARM_UP_TEXT = "warm-up.txt"
#: The name of a row, with what was measured and the number of tokens.
NAME = re.compile(r"Scale, (.+), ([\d,]+) tokens")
CACHED_WIDTH, CACHED_SENTENCES = 128, 32
SECONDS_BETWEEN_SAMPLES = 0.02
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
BILM = [
    *("--options-file", str(FIXTURES / "bilm/options.json")),
    *("--weight-file", str(FIXTURES / "bilm/weights.hdf5")),
]
#: What is measured, a function of a text and of the folder for its files.
Work = Callable[[Path, Path], object]


def embed(text: Path, folder: Path) -> None:
    output = str(folder / "vectors.hdf5")
    elmo(["embed", str(text), output, "--top", "--forget-sentences", *BILM])


def write_cache(text: Path, folder: Path) -> None:
    cache = LayerCache(folder, CACHED_WIDTH)
    shape = (1000, CACHED_WIDTH)
    layers = numpy.random.default_rng(0).standard_normal(shape).astype(numpy.float16)
    sentences = enumerate(read_words(text))
    while batch := list(islice(sentences, CACHED_SENTENCES)):
        cache.write((cached_key(number), layers[: len(words) + 2]) for number, words in batch)
    cache.flush()


def read_cache(text: Path, folder: Path) -> None:
    cache = LayerCache(folder, CACHED_WIDTH)
    with open(text, "rb") as lines:
        num_sentences = sum(1 for _ in lines)
    order = iter(numpy.random.default_rng(1).permutation(num_sentences))
    while batch := list(islice(order, CACHED_SENTENCES)):
        for _, layers in cache.read(map(cached_key, batch)):
            layers.astype(numpy.float32)


def cached_key(number: int) -> bytes:
    return hashlib.blake2b(str(number).encode(), digest_size=16).digest()


def train(text: Path, folder: Path) -> None:
    settings = {
        "corpus": {"train": str(text), "heldout": str(text.with_name(WARM_UP_TEXT))},
        "num_words": 50_000,
        "batches": {"order": "sentences", "tokens_per_batch": 3072},
        "num_epochs": 1,
    }
    experiment = json.dumps(str(FIXTURES / "experiments/bilm_small.jsonnet"))
    (folder / "scale.jsonnet").write_text(
        f"(import {experiment}) {{ settings+: {json.dumps(settings)} }}", encoding="utf-8"
    )
    params = Params.from_file(folder / "scale.jsonnet")
    prepare_environment(params)
    del params.params["distributed"]
    TrainModel.from_params(params=params, serialization_dir=str(folder), local_rank=0).run()


def build_index(text: Path, folder: Path) -> None:
    elmo(["neighbours", "build", str(text), str(folder / "index"), *BILM])


def query_index(text: Path, folder: Path) -> None:
    sentence = "They walked along the [bank] of the river ."
    elmo(["neighbours", "query", str(folder / "index"), sentence, *BILM])


#: The work of each part by its name in the results; later work reads the files of earlier work.
PARTS: Dict[str, Dict[str, Work]] = {
    "embed": {"embedding": embed},
    "cache": {"writing the cache": write_cache, "reading the cache": read_cache},
    "train": {"training a biLM": train},
    "neighbours": {"building an index": build_index, "a query": query_index},
}


class Point(NamedTuple):
    """Time and RAM of one kind of work on one text."""

    name: str
    num_tokens: int
    seconds: float
    processor_seconds: float
    megabytes: float


def read_words(text: Path) -> Iterator[Sequence[str]]:
    return (words for _, words in sentence_per_line.read_sentences(text) if words)


def write_text(source: Sequence[Path], num_tokens: int, output: Path) -> None:
    """The first tokens of a text, which is repeated if it has fewer."""
    missing = num_tokens
    with open(output, "w", encoding="utf-8") as file:
        while missing > 0:
            before = missing
            for words in chain.from_iterable(map(read_words, source)):
                file.write(f"{' '.join(words[:missing])}\n")
                missing -= len(words)
                if missing <= 0:
                    break
            if missing == before:
                raise SystemExit(f"{source[0]}: expected a text, found no word.")


def work_in_process(work: Work, texts: Sequence[Path], folder: Path, parent: Connection) -> None:
    """
    Sends `None` and waits for a message before the warm-up, and sends elapsed and processor seconds
    after the whole text.
    """
    torch.set_num_threads(1)
    outputs = [folder / text.stem for text in texts]
    for output in outputs:
        output.mkdir(parents=True, exist_ok=True)
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        parent.send(None)
        parent.recv()
        work(texts[0], outputs[0])
        start, processor_start = time.perf_counter(), time.process_time()
        work(texts[1], outputs[1])
        parent.send((time.perf_counter() - start, time.process_time() - processor_start))


def measure_work(
    name: str, work: Work, num_tokens: int, texts: Sequence[Path], folder: Path
) -> Point:
    what = f"{num_tokens:,} tokens, {name}"
    with child_process(what, work_in_process, work, texts, folder) as (process, child):
        child.recv()
        before = peak = resident("RssAnon", process)
        child.send(None)
        while not child.poll(SECONDS_BETWEEN_SAMPLES):
            peak = max(peak, resident("RssAnon", process))
        return Point(name, num_tokens, *child.recv(), peak - before)


def measure(source: Sequence[Path], parts: Sequence[str], sizes: Sequence[int]) -> Iterator[Point]:
    for num_tokens in sorted(sizes):
        with tempfile.TemporaryDirectory() as directory:
            texts = [Path(directory, WARM_UP_TEXT), Path(directory, "whole.txt")]
            for text, number in zip(texts, (WARM_UP, num_tokens)):
                write_text(source, number, text)
            for part in parts:
                folder = Path(directory, part)
                for name, work in PARTS[part].items():
                    yield measure_work(name, work, num_tokens, texts, folder)
                shutil.rmtree(folder)


def rows_of(points: Iterable[Point]) -> Iterator[Row]:
    before: Dict[str, List[Row]] = {}
    for point in points:
        name = f"Scale, {point.name}, {point.num_tokens:,} tokens"
        cost = 1e6 * point.processor_seconds / point.num_tokens
        share = min(1.0, point.processor_seconds / point.seconds)
        peers = [row.ours for row in before.get(point.name, ())] or [None, None]
        before[point.name] = [
            Row(name, "µs/token", cost, peers[0], share_of_limit=share),
            # A ratio to 0 MB, of a small text, is not defined.
            Row(f"{name}, RAM", "MB", point.megabytes, peers[1] or None),
        ]
        yield from before[point.name]


def draw(rows: Iterable[Row], picture: Path) -> None:
    """Costs and RAM over the number of tokens; other rows are left out."""
    curves: Dict[str, Dict[str, Dict[int, float]]] = {"µs/token": {}, "MB": {}}
    for row in rows:
        if parsed := NAME.match(row.name):
            curve = curves[row.unit].setdefault(parsed[1], {})
            curve[int(parsed[2].replace(",", ""))] = row.ours
    figure = new_figure(figsize=(9, 3.4))
    axes = figure.subplots(1, 2)
    for axis, unit in zip(axes, curves):
        for name, colour, mark in zip(curves[unit], COLOURS, MARKERS):
            tokens, values = zip(*sorted(curves[unit][name].items()))
            axis.plot(tokens, values, color=colour, marker=mark, markersize=4, label=name)
        axis.set(xscale="log", xlabel="tokens")
        axis.tick_params(labelsize=8)
        axis.grid(True, axis="y", color="#999999", alpha=0.3, linewidth=0.5)
    axes[0].set(yscale="log", ylabel="processor time per token, µs")
    axes[1].set(ylim=(0, None), ylabel="peak RAM, MB")
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right center", fontsize=8, frameon=False)
    save_picture(figure, picture)


def main() -> None:
    parser = measuring_parser(__doc__)
    text = os.path.join(os.environ.get("ELMO_DATA", "."), "lm", "large", "train-*.txt*")
    parser.add_argument(
        "text",
        nargs="?",
        default=text,
        help="file or pattern; default: $ELMO_DATA/lm/large",
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tokens", nargs="+", type=int, default=list(TOKENS), help="of the texts")
    parser.add_argument(
        "--plot", type=Path, help="SVG, PNG or PDF of the measured rows, or of those of --output"
    )
    arguments = parser.parse_args()
    source = [Path(path) for path in find_shards(arguments.text)]
    rows, kept = tee(rows_of(measure(source, arguments.part, arguments.tokens)))
    report(rows, arguments.output)
    if arguments.plot:
        draw(read_rows(arguments.output) if arguments.output else kept, arguments.plot)


if __name__ == "__main__":
    main()
