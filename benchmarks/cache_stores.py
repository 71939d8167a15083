"""
Speed of writing layers of sentences to disk and reading them: ELMo's cache (LMDB) against
other formats.

    python benchmarks/cache_stores.py
    python benchmarks/cache_stores.py --sentences 1000 --output results.json

Needs no corpus. Sentences have 3 to 59 tokens of 640 half-precision numbers each, as from a 512/128
biLM. They are written and synced in groups of 16 MB, and read in random order from the page cache
into float32. `peer` is HDF5 with a dataset per sentence, HDF5 with one dataset for all tokens, or a
memory-mapped file with its index in RAM.
"""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import h5py
import numpy
from common import Row, by_turns, measuring_parser, median_rate, report

from elmo_plugin.elmo import token_batches
from elmo_plugin.elmo.cache.layer_cache import LayerCache

WIDTH = 640
GROUP = 16 * 2**20
Entries = Dict[bytes, numpy.ndarray]


def make_entries(number: int) -> Entries:
    generator = numpy.random.default_rng(0)
    return {
        index.to_bytes(16, "little"): generator.standard_normal(
            (generator.integers(3, 60), WIDTH)
        ).astype(numpy.float16)
        for index in range(number)
    }


def groups(entries: Entries) -> Iterator[List[Tuple[bytes, numpy.ndarray]]]:
    return token_batches.groups(entries.items(), lambda item: item[1].nbytes, None, GROUP)


def sync(file: h5py.File) -> None:
    file.flush()
    os.fsync(file.id.get_vfd_handle())


class Cache:
    """ELMo's cache."""

    def __init__(self, folder: Path) -> None:
        self.cache = LayerCache(folder, WIDTH)

    def write(self, entries: Entries) -> None:
        self.cache.write(entries.items())
        self.cache.flush()

    def read(self, keys: List[bytes]) -> None:
        for _, layers in self.cache.read(keys):
            layers.astype(numpy.float32)


class DatasetPerSentence:
    """HDF5 with a dataset per sentence, as written by `allennlp elmo`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.file = h5py.File(folder / "layers.hdf5", "w")

    def write(self, entries: Entries) -> None:
        for group in groups(entries):
            for key, layers in group:
                self.file.create_dataset(key.hex(), data=layers)
            sync(self.file)

    def read(self, keys: List[bytes]) -> None:
        for key in keys:
            self.file[key.hex()][()].astype(numpy.float32)


class OneDataset:
    """HDF5 with one chunked dataset for all tokens."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.file = h5py.File(folder / "layers.hdf5", "w")
        self.tokens = self.file.create_dataset(
            "tokens", (0, WIDTH), numpy.float16, maxshape=(None, WIDTH), chunks=(64, WIDTH)
        )
        self.places: Dict[bytes, slice] = {}

    def write(self, entries: Entries) -> None:
        for group in groups(entries):
            first = len(self.tokens)
            self.tokens.resize(first + sum(len(layers) for _, layers in group), axis=0)
            for key, layers in group:
                self.places[key] = slice(first, first + len(layers))
                self.tokens[self.places[key]] = layers
                first += len(layers)
            sync(self.file)

    def read(self, keys: List[bytes]) -> None:
        for key in keys:
            self.tokens[self.places[key]].astype(numpy.float32)


class MappedFile:
    """A memory-mapped file of consecutive tokens."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path = folder / "layers"
        self.places: Dict[bytes, slice] = {}

    def write(self, entries: Entries) -> None:
        first = 0
        with open(self.path, "wb") as file:
            for group in groups(entries):
                for key, layers in group:
                    self.places[key] = slice(first, first + len(layers))
                    first += len(layers)
                    file.write(layers.tobytes())
                file.flush()
                os.fsync(file.fileno())

    def read(self, keys: List[bytes]) -> None:
        tokens = numpy.memmap(self.path, numpy.float16, "r").reshape(-1, WIDTH)
        for key in keys:
            tokens[self.places[key]].astype(numpy.float32)


PEERS = {
    "HDF5, a dataset per sentence": DatasetPerSentence,
    "HDF5, one dataset": OneDataset,
    "a bare mapped file": MappedFile,
}


def measure(number: int, turns: int) -> Iterator[Row]:
    entries = make_entries(number)
    megabytes = [sum(layers.nbytes for layers in entries.values()) / 2**20] * turns
    keys = [list(entries)[place] for place in numpy.random.default_rng(1).permutation(number)]
    with tempfile.TemporaryDirectory() as directory:
        stores = {"ours": Cache, **PEERS}
        opened = {name: {} for name in stores}

        def write(name: str, turn: int) -> None:
            opened[name] = stores[name](Path(directory, f"{name} {turn}"))
            opened[name].write(entries)

        written = by_turns({name: partial(write, name) for name in stores}, turns)
        read = by_turns(
            {name: lambda _, store=opened[name]: store.read(keys) for name in stores}, turns
        )
        file = Path(directory, f"ours {turns}", "data.mdb")
        yield Row(
            "Cached layers, the file against its numbers",
            "MB",
            file.stat().st_size / 2**20,
            megabytes[0],
        )
    for what, seconds in (("written", written), ("read", read)):
        ours = median_rate(seconds["ours"], megabytes)
        for name in PEERS:
            peer = median_rate(seconds[name], megabytes)
            yield Row(f"Cached layers {what}, against {name}", "MB/s", ours, peer)


def main() -> None:
    parser = measuring_parser(__doc__, turns=3)
    parser.add_argument("--sentences", type=int, default=4000, help="default 4000")
    arguments = parser.parse_args()
    report(measure(arguments.sentences, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
