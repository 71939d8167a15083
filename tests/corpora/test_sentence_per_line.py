import gzip
import tracemalloc

import pytest

from elmo_plugin.corpora.sentence_per_line import read_sentences


def write(tmp_path, data):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    return path


def test_words_and_line_numbers(tmp_path):
    path = write(tmp_path, "The  owl\tslept .\nÜber 🦉 שלום\n".encode("utf-8"))
    assert list(read_sentences(path)) == [
        (1, ("The", "owl", "slept", ".")),
        (2, ("Über", "🦉", "שלום")),
    ]


def test_empty_and_blank_lines_are_sentences_of_no_words(tmp_path):
    path = write(tmp_path, b"\na\n \t \n\nb\n\n")
    assert list(read_sentences(path)) == [
        (1, ()),
        (2, ("a",)),
        (3, ()),
        (4, ()),
        (5, ("b",)),
        (6, ()),
    ]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(tmp_path, separator):
    path = write(tmp_path, f"a{separator}b c\nd\n".encode("utf-8"))
    assert list(read_sentences(path)) == [(1, ("a", "b", "c")), (2, ("d",))]


def test_crlf_byte_order_mark_and_missing_final_newline(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbfa b\r\n\r\nc\r\nd")
    assert list(read_sentences(path)) == [(1, ("a", "b")), (2, ()), (3, ("c",)), (4, ("d",))]


def test_nul_survives(tmp_path):
    path = write(tmp_path, b"a\x00b \x00 and more\n")
    assert list(read_sentences(path)) == [(1, ("a\x00b", "\x00", "and", "more"))]


def test_an_empty_file_has_no_sentences(tmp_path):
    assert list(read_sentences(write(tmp_path, b""))) == []


def test_a_very_long_word_is_one_word(tmp_path):
    assert list(read_sentences(write(tmp_path, b"x" * 100_000))) == [(1, ("x" * 100_000,))]


def test_the_gz_twin_is_read(tmp_path):
    (tmp_path / "text.txt.gz").write_bytes(gzip.compress(b"a b\n"))
    assert list(read_sentences(tmp_path / "text.txt")) == [(1, ("a", "b"))]


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = write(tmp_path, b"some words of a sentence\n" * 100_000)
    tracemalloc.start()
    assert sum(len(words) for _, words in read_sentences(path)) == 500_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
