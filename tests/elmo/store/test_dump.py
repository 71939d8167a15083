"""The file of `elmo embed`; `test_contract.py` has what it shares with the other stores."""

import os
from contextlib import closing

import numpy
import pytest

from elmo_plugin.elmo.store.dump import DumpFile
from elmo_plugin.elmo.store.formats import format_of
from elmo_plugin.elmo.store.sentence_vectors import EmbeddedSentence
from elmo_plugin.util.errors import ConfigurationError
from tests.elmo.store.reading import SUFFIXES


def write(path, sentences, force=False, **settings):
    settings = {"dtype": "float32", "compression": "none", **settings}
    with closing(DumpFile(path, settings, force)) as file:
        file.add(sentences, {"num_lines": 1, "text_sha256": ""})
        return file.export("text.txt")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_something_else_wrote_is_not_taken_for_a_finished_one(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    sentence = EmbeddedSentence("0", ("word",), numpy.ones((3, 1, 4), "float32"))
    for content in (b"", b"junk", b"\0" * 100):
        path.write_bytes(content)
        assert format_of(path).read_attributes(path) == {}
        with pytest.raises(ConfigurationError, match=f"{path} exists. Give --force"):
            write(path, [sentence])
    write(path, [sentence], force=True)
    assert str(format_of(path).read_attributes(path)["complete"]) == "True"


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
                words = (f"{name}{number}",)
                sentences.append(EmbeddedSentence(words[0], words, vectors))
            write(path, sentences, force=True, compression=compression)
            assert path.stat().st_size < reserved.pop() and not reserved
