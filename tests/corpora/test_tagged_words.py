import pytest

from elmo_plugin.corpora.tagged_words import (
    TaggedSentence,
    read_conllu,
    read_tag_columns,
    span_columns,
)


def row(number, word, upos="X", xpos="_", deprel="_"):
    return "\t".join([number, word, "_", upos, xpos, "_", "_", deprel, "_", "_"])


def test_words_and_the_chosen_column_are_read(write):
    lines = [
        "# sent_id = 1",
        row("1", "They", "PRON", "PRP", "nsubj"),
        row("2-3", "didn't", "_"),
        row("2", "did", "AUX", "VBD", "aux"),
        row("2.1", "go", "VERB"),
        row("3", "50 000", "NUM", "CD", "obj"),
        "",
        "",
        "# no words",
        "",
        row("1", "Yes", "INTJ", "UH", "root"),
    ]
    path = write("\n".join(lines))
    assert list(read_conllu(path)) == [
        TaggedSentence(("They", "did", "50 000"), ("PRON", "AUX", "NUM")),
        TaggedSentence(("Yes",), ("INTJ",)),
    ]
    assert [s.tags for s in read_conllu(path, "xpos")] == [("PRP", "VBD", "CD"), ("UH",)]
    assert [s.tags for s in read_conllu(path, "deprel")] == [("nsubj", "aux", "obj"), ("root",)]


def test_plain_columns_are_counted_from_one_or_from_the_right(write):
    path = write("-DOCSTART- -X- O\n\n# NN B\nowls NNS I\n\n-DOCSTART- -X- O\ngo VB O\n")
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
        ((1, 4), "x.txt:1: expected at least 4 columns, found 3"),
        ((-4, 1), "x.txt:1: expected at least 4 columns, found 3"),
    ],
)
def test_a_column_that_is_not_there_is_refused(write, columns, message):
    with pytest.raises(ValueError, match=message):
        list(read_tag_columns(write("owls NNS I\n"), *columns))


def test_a_sentence_may_be_without_tags_where_that_is_allowed(write):
    lines = [row("1", "Go", "_"), "", row("1", "Yes", "INTJ")]
    path = write("\n".join(lines))
    tags = [sentence.tags for sentence in read_conllu(path, untagged=True)]
    assert tags == [(), ("INTJ",)]
    # No features is a value.
    assert [s.tags for s in read_conllu(path, "feats", untagged=True)] == [("_",), ("_",)]
    path = write("\n".join([row("1", "Go", "VERB"), row("2", "on", "_")]))
    with pytest.raises(ValueError, match="x.txt:2: expected a value of `upos`"):
        list(read_conllu(path, untagged=True))


def test_spans_in_conllu_are_checked_where_they_are_expected(write):
    path = write("\n".join([row("1", "Ada", xpos="B-PER"), row("2", "ran", xpos="VBD")]))
    with pytest.raises(ValueError, match="x.txt:2: .* B-PER or I-PER in column xpos, found 'VBD'"):
        list(read_conllu(path, "xpos", any_tags=False))


@pytest.mark.parametrize(
    "name, text, columns",
    [
        ("x.conll", "-DOCSTART- -X- O\n\nAda NN B-PER\nran O O\n\nBo NN U-PER\n", [-1, 3]),
        ("x.conll", "Ada B-PER NN\nran O VB\n", [2]),
        ("x.conll", "Ada B-NP B-PER\nran O O\n", [-1, 2, 3]),
        ("x.conll", "Ada B-PER\n\nran VB\n", []),
        ("x.csv", '",",O\nAda,S-PER\n', [-1, 2]),
        ("x.conll", "Ada\n", []),
        (
            "x.conllu",
            "# Ada\n"
            + "\n".join(
                [row("1-2", "Adaran"), row("1", "Ada", xpos="B-A"), row("2", "a", xpos="O")]
            ),
            [5],
        ),
    ],
)
def test_columns_of_spans_are_found_in_the_whole_file(write, name, text, columns):
    assert span_columns(write(text, name)) == columns
