import gzip
import tracemalloc

import pytest

from elmo_plugin.corpora.sentence_per_line import count_words, read_sentences


@pytest.mark.parametrize(
    "text, sentences",
    [
        (
            "The  owl\tslept .\nÜber 🦉 שלום\n",
            [("The", "owl", "slept", "."), ("Über", "🦉", "שלום")],
        ),
        ("\na\n \t \n\nb\n\n", [(), ("a",), (), (), ("b",), ()]),
        ("\ufeffa b\r\n\r\nc\r\nd", [("a", "b"), (), ("c",), ("d",)]),
        ("a\x00b \x00 and more\n", [("a\x00b", "\x00", "and", "more")]),
        ("", []),
        ("x" * 100_000, [("x" * 100_000,)]),
        # Only a line feed ends a line.
        *[
            (f"a{separator}b c\nd\n", [("a", "b", "c"), ("d",)])
            for separator in "\u2028\u2029\x85\x0b\x0c\x1c\r"
        ],
    ],
)
def test_every_line_is_a_sentence_of_words_between_white_space(write, text, sentences):
    path = write(text)
    assert list(read_sentences(path)) == list(enumerate(sentences, start=1))
    paths = [path, write(gzip.compress(text.encode()), "text.gz")]
    words, num_sentences = count_words(paths, [].append)
    assert words.total() == 2 * sum(map(len, sentences))
    assert num_sentences == 2 * sum(map(bool, sentences))


def test_words_of_all_files_are_counted_with_progress(write):
    told = []
    paths = [write("the owl saw the owl\n\nit  slept\tlong\n"), write("the Üb\n", "b.txt")]
    words, num_sentences = count_words(paths, told.append)
    assert words == {
        "the": 3, "owl": 2, "saw": 1, "it": 1, "slept": 1, "long": 1, "Üb": 1,
    }  # fmt: skip
    assert num_sentences == 3 and told == [1] * 4
    assert count_words([], told.append) == ({}, 0)


def test_memory_does_not_grow_with_the_file(write):
    path = write(b"some words of a sentence\n" * 100_000)
    tracemalloc.start()
    words, _ = count_words([path], lambda number: None)
    assert words["some"] == 100_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
