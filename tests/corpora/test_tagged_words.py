import pytest

from elmo_plugin.corpora.tagged_words import TaggedSentence, read_conllu, read_tag_columns


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
