"""Reads what `elmo embed` writes, by the libraries of the formats."""

import h5py
import numpy

SUFFIXES = [".hdf5"]


def read(path):
    """
    The vectors of each sentence by name, without sentences that have no tokens, and the attributes
    as strings.
    """
    read = {".hdf5": _hdf5}[path.suffix]
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
