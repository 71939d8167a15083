import gzip
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2003 import Sentence, check_word, format_sentence, read_sentences
from elmo_plugin.corpora.tag_spans import TagSpan, tags_to_spans

CORPUS = Path(__file__).parents[2] / "fixtures/corpora/ner"

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


@pytest.fixture
def write(tmp_path):
    def write(text, name="x.conll"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_every_field_of_every_sentence(write):
    assert list(read_sentences(write(TWO_DOCUMENTS))) == [
        Sentence(
            is_document_start=True,
            words=("Ada", "Lind", "left"),
            tags=("I-PER", "I-PER", "O"),
        ),
        Sentence(False, ("She",), ("O",)),
        Sentence(True, ("#", "York", "Leeds"), ("O", "I-LOC", "B-LOC")),
    ]


def test_a_file_of_words_alone_has_no_tags(write):
    (first, second) = read_sentences(write("Ada\nleft\n\n#\n"))
    assert (first.words, first.tags) == (("Ada", "left"), ())
    assert second.words == ("#",) and not second.is_document_start


def test_two_columns_any_blanks_line_ends_and_compression_are_read(write):
    text = "\ufeffAda\tB-PER\r\nof  \tO\r\n\u00a0 O\r\n".encode()
    (sentence,) = read_sentences(write(gzip.compress(text), "x.conll.gz"))
    assert sentence.words == ("Ada", "of", "\u00a0")
    assert sentence.tags == ("B-PER", "O", "O")


def test_only_the_first_sentence_after_a_boundary_starts_a_document(write):
    sentences = read_sentences(write("a O\n-DOCSTART- O\n-DOCSTART- O\nb O\n\nc O\n"))
    assert [(s.words[0], s.is_document_start) for s in sentences] == [
        ("a", False),
        ("b", True),
        ("c", False),
    ]


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("a O\nb I\n", 2, "expected a tag such as O, B-PER or I-PER .* found 'I'. Write O, or"),
        ("a O\n\nb X-PER\n", 3, "found 'X-PER'"),
        ("a B-\n", 1, "found 'B-'"),
        ("a 0\n", 1, "found '0'"),
        ("a b-PER\n", 1, "found 'b-PER'"),
        ("a N O\n\nb N O\nc O\n", 4, "expected 3 columns as in the first sentence, found 2. Write"),
        ("a O\n\nb\n", 3, "expected 2 columns as in the first sentence, found 1"),
        ("a\nb O\n", 2, "expected 1 columns as in the first sentence, found 2"),
        (b"a O\n\xe9 O\n", 2, "expected UTF-8 text, found the byte 0xe9"),
    ],
)
def test_a_malformed_line_is_named_with_its_cure(write, text, line, message):
    with pytest.raises(ValueError, match=rf"x\.conll:{line}: .*{message}"):
        list(read_sentences(write(text)))


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- O\n\n"])
def test_a_file_without_sentences_is_refused(write, text):
    with pytest.raises(ValueError, match="expected one word per line, found no words"):
        list(read_sentences(write(text)))


def test_what_is_written_reads_back(write):
    text = format_sentence(["Ada", "#"], ["B-PER", "O"], ["O", "O"], is_document_start=True)
    assert text == "-DOCSTART- O O\n\nAda O B-PER\n# O O\n\n"
    assert format_sentence(["Ada"], ["O"]) == "Ada O\n\n"
    (sentence,) = read_sentences(write(text))
    assert (sentence.words, sentence.tags) == (("Ada", "#"), ("B-PER", "O"))
    assert sentence.is_document_start


def test_what_columns_cannot_hold_is_refused():
    for word in ("", "New York", "a\tb", "a\n", "-DOCSTART-"):
        with pytest.raises(ValueError, match="words without spaces, and not -DOCSTART-"):
            check_word(word)
        with pytest.raises(ValueError, match="words without spaces"):
            format_sentence([word], ["O"])
    check_word("a\u00a0b")


@pytest.mark.parametrize(
    "name, num_documents, num_sentences, num_entities",
    [("train", 6, 56, 118), ("dev", 3, 17, 36), ("test", 3, 18, 36)],
)
def test_the_fixture_is_conll_2003(name, num_documents, num_sentences, num_entities):
    sentences = list(read_sentences(CORPUS / f"{name}.conll"))
    assert sum(sentence.is_document_start for sentence in sentences) == num_documents
    assert len(sentences) == num_sentences
    assert sum(len(tags_to_spans(sentence.tags)) for sentence in sentences) == num_entities
    for sentence in sentences:
        # IOB1: a B only where two of a type meet.
        before = "O"
        for tag in sentence.tags:
            assert tag[0] != "B" or before[2:] == tag[2:]
            before = tag
    assert any(tag[0] == "B" for sentence in sentences for tag in sentence.tags)


def test_tags_may_be_in_another_column(write):
    (sentence,) = read_sentences(write(CHUNKS), tag_column=3)
    assert sentence.tags == ("B-NP", "I-NP", "B-VP")
    assert tags_to_spans(sentence.tags) == [TagSpan("NP", 0, 1), TagSpan("VP", 2, 2)]
    (words_alone,) = read_sentences(write("The\nowl\n"), tag_column=3)
    assert words_alone.tags == ()


@pytest.mark.parametrize(
    "column, message",
    [
        (2, "x.conll:1: expected a tag such as O, B-PER or I-PER in column 2, found 'DT'"),
        (5, r"x.conll:1: expected tags in column 5 \(`tag_column`\), found 4 columns"),
    ],
)
def test_a_column_without_tags_is_named(write, column, message):
    with pytest.raises(ValueError, match=message):
        list(read_sentences(write(CHUNKS), tag_column=column))


def test_the_chunks_of_the_fixture_are_those_of_its_entities():
    for name in ("train", "dev", "test"):
        chunks = read_sentences(CORPUS.parent / f"chunking/{name}.txt")
        others = read_sentences(CORPUS / f"{name}.conll", tag_column=3)
        for chunked, other in zip(chunks, others, strict=True):
            assert chunked.words == other.words
            assert tags_to_spans(chunked.tags) == tags_to_spans(other.tags)
