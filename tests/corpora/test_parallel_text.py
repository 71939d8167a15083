import gzip

import pytest

from elmo_plugin.corpora.parallel_text import SentencePair, read_sentence_pairs


@pytest.fixture
def read(tmp_path):
    def read(source, target):
        (tmp_path / "x.en").write_text(source, encoding="utf-8")
        (tmp_path / "x.de.gz").write_bytes(gzip.compress(target.encode()))
        return list(read_sentence_pairs(tmp_path / "x.en", tmp_path / "x.de"))

    return read


def test_lines_of_one_number_are_a_pair(read):
    assert read("A dog.\n Two\u2028cats. \r\n", "Ein Hund.\nZwei Katzen.") == [
        SentencePair("A dog.", "Ein Hund."),
        SentencePair("Two\u2028cats.", "Zwei Katzen."),
    ]


def test_lines_that_are_empty_in_both_files_are_skipped(read):
    assert read("A dog.\n\n \nA cat.\n\n", "Ein Hund.\n \n\nEine Katze.\n\n") == [
        SentencePair("A dog.", "Ein Hund."),
        SentencePair("A cat.", "Eine Katze."),
    ]


@pytest.mark.parametrize(
    "source, target, message",
    [
        ("a\nb\n", "a\n", r"x\.de:2: expected .* of .*x\.en, found the end of the file\. Add"),
        ("a\n", "a\nb\n", r"x\.en:2: expected .* of .*x\.de, found the end of the file\. Add"),
        ("a\n\nc\n", "a\nb\nc\n", r"x\.en:2: expected .* of .*x\.de, found an empty line\. Add"),
        ("a\nb\n", "a\n \n", r"x\.de:2: expected .* of .*x\.en, found an empty line\. Add"),
        ("a\n\n", "a\n", r"x\.de:2: expected .* of .*x\.en, found the end of the file\. Add"),
    ],
)
def test_a_sentence_without_a_translation_is_named_with_its_place(read, source, target, message):
    with pytest.raises(ValueError, match=message):
        read(source, target)
