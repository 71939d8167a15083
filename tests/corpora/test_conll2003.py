import pytest

from elmo_plugin.corpora.conll2003 import Sentence, format_sentence, read_sentences
from elmo_plugin.corpora.tag_spans import TagSpan, tags_to_spans

TWO_DOCUMENTS = """\
-DOCSTART- -X- -X- O

Ada NNP I-NP I-PER
Lind NNP I-NP I-PER
left VBD I-VP O

She PRP I-NP O

-DOCSTART- -X- -X- O
# NN I-NP O
York NNP I-NP I-LOC
Leeds NNP I-NP B-LOC
"""


CHUNKS = """\
The DT B-NP O
owl NN I-NP O
sleeps VBZ B-VP B-X
"""


def test_every_field_of_every_sentence(write):
    assert list(read_sentences(write(TWO_DOCUMENTS))) == [
        Sentence(
            is_document_start=True,
            words=("Ada", "Lind", "left"),
            tags=("I-PER", "I-PER", "O"),
            document=1,
        ),
        Sentence(False, ("She",), ("O",), 1),
        Sentence(True, ("#", "York", "Leeds"), ("O", "I-LOC", "B-LOC"), 2),
    ]


def test_a_file_of_words_alone_has_no_tags(write):
    (first, second) = read_sentences(write("Ada\nleft\n\n#\n"))
    assert (first.words, first.tags) == (("Ada", "left"), ())
    assert second.words == ("#",) and not second.is_document_start


def test_words_may_hold_other_blanks(write):
    (sentence,) = read_sentences(write("Ada\tB-PER\nof  \tO\n\u00a0 O\n"))
    assert sentence.words == ("Ada", "of", "\u00a0")
    assert sentence.tags == ("B-PER", "O", "O")


def test_only_the_first_sentence_after_a_boundary_starts_a_document(write):
    sentences = read_sentences(write("a O\n-DOCSTART- O\n-DOCSTART- O\nb O\n\nc O\n"))
    assert [(s.words[0], s.is_document_start) for s in sentences] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]


def test_what_is_written_reads_back(write):
    text = format_sentence(["Ada", "#"], ["B-PER", "O"], ["O", "O"], is_document_start=True)
    assert text == "-DOCSTART- O O\n\nAda O B-PER\n# O O\n\n"
    assert format_sentence(["Ada"], ["O"]) == "Ada O\n\n"
    (sentence,) = read_sentences(write(text))
    assert (sentence.words, sentence.tags) == (("Ada", "#"), ("B-PER", "O"))
    assert sentence.is_document_start


def test_tags_may_be_in_another_column(write):
    (sentence,) = read_sentences(write(CHUNKS), tag_column=3)
    assert sentence.tags == ("B-NP", "I-NP", "B-VP")
    assert tags_to_spans(sentence.tags) == [TagSpan("NP", 0, 1), TagSpan("VP", 2, 2)]
    (words_alone,) = read_sentences(write("The\nowl\n"), tag_column=3)
    assert words_alone.tags == ()


@pytest.mark.parametrize(
    "column, message",
    [
        (2, "x.txt:1: expected a tag such as O, B-PER or I-PER in column 2, found 'DT'"),
        (5, "x.txt:1: expected at least 5 columns, found 4"),
    ],
)
def test_a_column_without_tags_is_named(write, column, message):
    with pytest.raises(ValueError, match=message):
        list(read_sentences(write(CHUNKS), tag_column=column))
