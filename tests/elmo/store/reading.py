"""Reads what `elmo embed` writes, by the libraries of the formats."""

import h5py
import numpy
import pyarrow.parquet
from safetensors import safe_open

SUFFIXES = [".hdf5", ".safetensors", ".parquet"]


def read(path):
    """
    The vectors of each sentence by name, without sentences that have no tokens, and the attributes
    as strings.
    """
    read = {".hdf5": _hdf5, ".safetensors": _safetensors, ".parquet": _parquet}[path.suffix]
    vectors, attributes = read(path)
    vectors.pop("sentence_to_index", None)
    found = {name: each for name, each in vectors.items() if each.size}
    return found, {name: str(value) for name, value in attributes.items()}


def same(found, expected):
    """Whether two dictionaries of arrays have the same types, shapes and bits."""
    return found.keys() == expected.keys() and all(
        found[name].dtype == each.dtype
        and found[name].shape == each.shape
        and found[name].tobytes() == each.tobytes()
        for name, each in expected.items()
    )


def _hdf5(path):
    with h5py.File(path) as file:
        return {name: numpy.asarray(file[name][()]) for name in file}, dict(file.attrs)


def _safetensors(path):
    with safe_open(path, "numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def _parquet(path):
    table = pyarrow.parquet.read_table(path)
    frame = {name: table[name].to_numpy() for name in ("sentence", "position")}
    layers = [
        numpy.stack(table[name].to_numpy(zero_copy_only=False))
        for name in table.column_names[3:]
        if len(table)
    ]
    vectors = {}
    for sentence in numpy.unique(frame["sentence"]):
        rows = frame["sentence"] == sentence
        assert frame["position"][rows].tolist() == list(range(rows.sum()))
        each = numpy.stack([layer[rows] for layer in layers])
        vectors[str(sentence)] = each if "layer_0" in table.column_names else each[0]
    metadata = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    return vectors, metadata
