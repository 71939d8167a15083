import gzip
import zipfile

import numpy
import pytest

from elmo_plugin.util.word_vectors import parse_vectors, vector_lines

LINES = ["the 1 2 3", "play 4 5 6", "at the 0 0 1", "Zeus 7 8 9", "play 0 0 0"]


def read(path, words):
    return parse_vectors(vector_lines(str(path)), words)[0]


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
@pytest.mark.parametrize("header", ["", "5 3\n", "\ufeff"])
def test_the_vectors_of_the_wanted_words_are_read(tmp_path, name, header):
    path = write(tmp_path / name, header + "\n".join(LINES) + "\n\n")
    found = read(path, {"the", "play", "at the", "zeus"})
    assert found["play"].dtype == numpy.float32
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "the": [1, 2, 3],
        "play": [4, 5, 6],
        "at the": [0, 0, 1],
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "v.txt:1: expected word vectors, found an empty file"),
        (
            "the\t1\t2\n",
            "v.txt:1: expected a word and the numbers of its vector, separated by spaces",
        ),
        ("the 1 2 3\nplay 4 5\n", "v.txt:2: expected a word and the 3 numbers"),
        ("the 1 2 3\nplay 4 5 nan\n", "v.txt:2: expected a word and the 3 numbers"),
    ],
)
def test_what_is_no_file_of_vectors_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(write(tmp_path / "v.txt", text), {"the", "play"})


def test_a_zip_is_to_be_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as archive:
        archive.writestr("inside.txt", "the 1 2 3")
    with pytest.raises(ValueError, match="v.zip:1: .* a zip archive. Unpack it."):
        read(tmp_path / "v.zip", {"the"})
