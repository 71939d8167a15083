import gzip
import tracemalloc

import pytest

from elmo_plugin.corpora.word_counts import count_words


def write(path, data):
    path.write_bytes(data)
    return path


def test_words_of_all_files_are_counted(tmp_path):
    plain = write(tmp_path / "a.txt", b"the owl saw the owl\n\nit  slept\tlong\n")
    packed = write(tmp_path / "b.txt.gz", gzip.compress("the Üb\n".encode()))
    counts = count_words([plain, packed])
    assert counts.words == {
        "the": 3, "owl": 2, "saw": 1, "it": 1, "slept": 1, "long": 1, "Üb": 1,
    }  # fmt: skip
    assert counts.num_sentences == 3


def test_blank_lines_are_no_sentences_and_no_file_has_no_words(tmp_path):
    assert count_words([write(tmp_path / "a.txt", b"\n \r\n\t\n")]) == ({}, 0)
    assert count_words([]) == ({}, 0)


def test_odd_text_is_counted_as_it_is_read(tmp_path):
    text = "\ufeffa\r\nb\u2028b\n\0 \U0001f989\nשלום\n".encode() + b"x" * 10_000
    counts = count_words([write(tmp_path / "a.txt", text)])
    assert counts.words == {
        "a": 1, "b": 2, "\0": 1, "\U0001f989": 1, "שלום": 1, "x" * 10_000: 1,
    }  # fmt: skip
    assert counts.num_sentences == 5


def test_progress_adds_up_to_the_number_of_lines(tmp_path):
    told = []
    path = write(tmp_path / "a.txt", b"a b\n\n" * 12_500)
    count_words([path, path], told.append)
    assert told == [1] * 50_000


def test_a_missing_or_damaged_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        count_words([tmp_path / "nowhere.txt"])
    damaged = write(tmp_path / "a.gz", gzip.compress(b"a b c\n" * 1000)[:-20])
    with pytest.raises(ValueError, match="a.gz:.*truncated"):
        count_words([damaged])


def test_memory_does_not_grow_with_the_text(tmp_path):
    path = write(tmp_path / "a.txt", b"some words of a sentence\n" * 100_000)
    tracemalloc.start()
    count_words([path])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
