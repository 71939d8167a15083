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
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("other.txt", "play 9 9 9\n")
            archive.writestr("inside.txt", text)
        return f"({path})#inside.txt"
    else:
        path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.zip"])
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


def test_an_error_within_an_archive_names_the_file_in_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as archive:
        archive.writestr("inside.txt", b"the 1 2 3\nplay\xff 4 5 6\n")
    with pytest.raises(ValueError, match="v.zip: .* inside.txt:2: expected UTF-8 text, found the"):
        read(tmp_path / "v.zip", {"the", "play"})


@pytest.mark.parametrize(
    "files, name, message",
    [
        ({}, "v.zip", "v.zip: expected a zip archive with a file of word vectors"),
        ({"a.txt": "the 1 2 3\n"}, "(v.zip)#b.txt", "There is no item named 'b.txt'"),
        (
            {"a.txt": "x", "b.txt": "y"},
            "v.zip",
            "v.zip: expected .* 2 files. Name one, such as '.v.zip.#a.txt'",
        ),
        ({"a.txt": "the 1 2 3\n"}, "v.zip", "Bad CRC-32 for file 'a.txt'"),
    ],
)
def test_an_archive_that_cannot_be_read_is_refused(tmp_path, monkeypatch, files, name, message):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("v.zip", "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
    content = (tmp_path / "v.zip").read_bytes()
    (tmp_path / "v.zip").write_bytes(content.replace(b"1 2 3", b"1 2 4"))
    with pytest.raises(ValueError, match=message):
        read(name, {"the"})


def test_a_name_with_a_bracket_is_a_name(tmp_path):
    path = tmp_path / "(old) vectors.txt"
    path.write_text("play 0.5 1.5\n")
    assert read(path, {"play"})["play"].tolist() == [0.5, 1.5]
