"""The file of `elmo embed`; `test_contract.py` has what it shares with the other stores."""

import os
from contextlib import closing

import numpy
import pytest

from elmo_plugin.elmo.store.dump import DumpFile, finished_attributes
from elmo_plugin.elmo.store.sentence_vectors import EmbeddedSentence, SentenceGroup
from elmo_plugin.util.errors import ConfigurationError
from tests.elmo.store.reading import SUFFIXES


def write(path, sentences, index=None, force=False, **settings):
    settings = {"dtype": "float32", "compression": "none", **settings}
    with closing(DumpFile(path, settings, force)) as file:
        file.add(SentenceGroup([], 1, ""), sentences)
        return file.export("text.txt", index)


def named(name):
    return EmbeddedSentence(name, (name,), numpy.ones((3, 1, 4), "float32"))


@pytest.mark.parametrize("suffix", [".hdf5", ".safetensors"])
@pytest.mark.parametrize("index", [None, {"a sentence": "0"}])
def test_a_sentence_may_have_the_name_of_the_index(tmp_path, suffix, index):
    path = tmp_path / f"out{suffix}"
    sentence = named("0" if index else "sentence_to_index")
    assert write(path, [sentence], index, sentence_keys=index is None) == 1
    assert finished_attributes(path)["num_datasets"] == "1"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_something_else_wrote_is_not_taken_for_a_finished_one(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    for content in (b"", b"junk", b"\0" * 100):
        path.write_bytes(content)
        assert finished_attributes(path) is None
        with pytest.raises(ConfigurationError, match=f"{path} exists. Give --force"):
            write(path, [named("0")])
    write(path, [named("0")], force=True)
    assert finished_attributes(path)["num_datasets"] == "1"


def test_hdf5_never_needs_more_space_than_is_reserved(tmp_path, monkeypatch):
    path = tmp_path / "out.hdf5"
    reserved = []
    allocate = os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", lambda *a: reserved.append(a[2]) or allocate(*a))
    generator = numpy.random.default_rng(0)
    for compression in ("none", "gzip", "lzf"):
        for num_tokens, name in ((0, ""), (1, ""), (3, "name " * 500), (1100, "")):
            sentences = []
            for number in range(400 if num_tokens < 4 else 3):
                # Random bytes, which no filter can make smaller.
                data = generator.bytes(2 * num_tokens * 8 * 4)
                vectors = numpy.frombuffer(data, "float32").reshape(2, num_tokens, 8)
                sentences.append(EmbeddedSentence(f"{name}{number}", (), vectors))
            index = {f"{name}{number}": str(number) for number in range(400)}
            write(path, sentences, index, force=True, compression=compression)
            assert path.stat().st_size < reserved.pop() and not reserved
