import sys
from pathlib import Path

import pytest

from elmo_plugin.corpora.tagged_words import TaggedSentence, read_conllu, read_tag_columns

CORPORA = Path(__file__).parents[2] / "fixtures/corpora"


def row(number, word, upos="X", xpos="_", deprel="_"):
    return "\t".join([number, word, "_", upos, xpos, "_", "_", deprel, "_", "_"])


def write(tmp_path, *lines):
    path = tmp_path / "x.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_words_and_the_chosen_column_are_read(tmp_path):
    path = write(
        tmp_path,
        "# sent_id = 1",
        row("1", "They", "PRON", "PRP", "nsubj"),
        row("2", "sail", "VERB", "VBP", "root"),
        "",
        "",
        "# no words",
        "",
        row("1", "Yes", "INTJ", "UH", "root"),
    )
    assert list(read_conllu(path)) == [
        TaggedSentence(("They", "sail"), ("PRON", "VERB")),
        TaggedSentence(("Yes",), ("INTJ",)),
    ]
    assert [s.tags for s in read_conllu(path, "xpos")] == [("PRP", "VBP"), ("UH",)]
    assert [s.tags for s in read_conllu(path, "deprel")] == [("nsubj", "root"), ("root",)]


def test_ranges_and_empty_nodes_are_skipped(tmp_path):
    path = write(
        tmp_path,
        row("1-2", "didn't", "_"),
        row("1", "did", "AUX"),
        row("2", "n't", "PART"),
        row("2.1", "go", "VERB"),
        row("3", "50 000", "NUM"),
    )
    assert list(read_conllu(path)) == [
        TaggedSentence(("did", "n't", "50 000"), ("AUX", "PART", "NUM"))
    ]


@pytest.mark.parametrize(
    "lines, message",
    [
        (
            [row("1", "A"), "", row("1", "B"), "2 C NOUN"],
            "x.conllu:3: expected a sentence in CoNLL",
        ),
        ([row("1", "A", "_")], "x.conllu:1: expected a value of `upos` for each word, .* for 'A'"),
        ([row("one", "A")], "x.conllu:1: expected a sentence in CoNLL-U"),
        (["# only a comment"], "x.conllu: expected sentences in CoNLL-U, found none"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        list(read_conllu(write(tmp_path, *lines)))


def test_without_the_library_the_cure_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "conllu", None)
    with pytest.raises(ImportError, match="pip install conllu"):
        list(read_conllu(write(tmp_path, row("1", "A"))))


def test_plain_columns_are_counted_from_one_or_from_the_right(tmp_path):
    path = write(
        tmp_path, "-DOCSTART- -X- O", "", "# NN B", "owls NNS I", "", "-DOCSTART- -X- O", "go VB O"
    )
    expected = [
        TaggedSentence(("#", "owls"), ("NN", "NNS")),
        TaggedSentence(("go",), ("VB",)),
    ]
    assert list(read_tag_columns(path, 1, 2)) == expected
    assert list(read_tag_columns(path, -3, -2)) == expected


@pytest.mark.parametrize(
    "columns, message",
    [
        ((1, 0), "found column 0"),
        ((1, 4), "x.conllu:1: expected at least 4 columns, found 3"),
        ((-4, 1), "x.conllu:1: expected at least 4 columns, found 3"),
    ],
)
def test_a_column_that_is_not_there_is_refused(tmp_path, columns, message):
    with pytest.raises(ValueError, match=message):
        list(read_tag_columns(write(tmp_path, "owls NNS I"), *columns))


@pytest.mark.parametrize("split, sentences, words", [("train", 56, 611), ("test", 18, 179)])
def test_the_fixture_has_the_words_and_tags_of_the_corpus_it_is_made_from(split, sentences, words):
    found = list(read_conllu(CORPORA / f"pos/{split}.conllu", "xpos"))
    assert len(found) == sentences and sum(len(each.words) for each in found) == words
    assert found == list(read_tag_columns(CORPORA / f"ner/{split}.conll", 1, 2))
