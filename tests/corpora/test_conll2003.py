import gzip
import random
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2003 import (
    Entity,
    Sentence,
    bio_tags,
    check_word,
    find_entities,
    format_sentence,
    read_sentences,
)

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


SCHEMES = {
    "IOB1": "I-PER I-PER B-PER O I-LOC I-ORG I-ORG I-ORG",
    "BIO": "B-PER I-PER B-PER O B-LOC B-ORG I-ORG I-ORG",
    "BIOES": "B-PER E-PER S-PER O S-LOC B-ORG I-ORG E-ORG",
    "BIOUL": "B-PER L-PER U-PER O U-LOC B-ORG I-ORG L-ORG",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_need_not_be_named(scheme):
    expected = [Entity("PER", 0, 1), Entity("PER", 2, 2), Entity("LOC", 4, 4), Entity("ORG", 5, 7)]
    assert find_entities(SCHEMES[scheme].split()) == expected
    assert bio_tags(expected, 8) == SCHEMES["BIO"].split()


# What conlleval's conditions on pairs of tags make of sequences that no scheme allows.
ILL_FORMED = [
    ("an inside after nothing starts", "O I-A I-A O", [("A", 1, 2)]),
    (
        "a type that changes within starts",
        "B-A I-B I-B I-A",
        [("A", 0, 0), ("B", 1, 2), ("A", 3, 3)],
    ),
    ("an end after nothing starts", "O E-A E-A I-A", [("A", 1, 1), ("A", 2, 2), ("A", 3, 3)]),
    ("an inside after an end starts", "B-A E-A I-A E-A", [("A", 0, 1), ("A", 2, 3)]),
    ("an end of another type starts", "B-A E-B O", [("A", 0, 0), ("B", 1, 1)]),
    ("a beginning after a beginning starts", "B-A B-A I-A", [("A", 0, 0), ("A", 1, 2)]),
    ("a beginning without an end ends with the sentence", "O B-A I-A", [("A", 1, 2)]),
    ("after a single nothing goes on", "S-A I-A U-A L-A", [("A", i, i) for i in range(4)]),
    ("a type may hold a hyphen", "B-A-B I-A-B I-A", [("A-B", 0, 1), ("A", 2, 2)]),
    ("no tags", "", []),
]


@pytest.mark.parametrize("rule, tags, expected", ILL_FORMED, ids=[case[0] for case in ILL_FORMED])
def test_ill_formed_tags_mean_what_conlleval_makes_of_them(rule, tags, expected):
    assert find_entities(tags.split()) == [Entity(*entity) for entity in expected]


def test_entities_written_as_tags_read_back():
    random.seed(1)
    for _ in range(200):
        prefixes = random.choices("BIESLUO", k=8)
        tags = [p if p == "O" else f"{p}-{random.choice('AB')}" for p in prefixes]
        entities = find_entities(tags)
        assert find_entities(bio_tags(entities, 8)) == entities


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
    with pytest.raises(ValueError, match="expected sentences of one word per line, found none"):
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
        with pytest.raises(ValueError, match="words without blanks and other than -DOCSTART-"):
            check_word(word)
        with pytest.raises(ValueError, match="words without blanks"):
            format_sentence([word], ["O"])
    check_word("a\u00a0b")
    with pytest.raises(ValueError, match="a tag for each of 2 words, found 2 and 1"):
        format_sentence(["a", "b"], ["O"], ["O", "O"])


@pytest.mark.parametrize(
    "name, num_documents, num_sentences, num_entities",
    [("train", 6, 56, 118), ("dev", 3, 17, 36), ("test", 3, 18, 36)],
)
def test_the_fixture_is_conll_2003(name, num_documents, num_sentences, num_entities):
    sentences = list(read_sentences(CORPUS / f"{name}.conll"))
    assert sum(sentence.is_document_start for sentence in sentences) == num_documents
    assert len(sentences) == num_sentences
    assert sum(len(find_entities(sentence.tags)) for sentence in sentences) == num_entities
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
    assert find_entities(sentence.tags) == [Entity("NP", 0, 1), Entity("VP", 2, 2)]
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
            assert find_entities(chunked.tags) == find_entities(other.tags)
