import numpy
import pytest
import torch

from elmo_plugin import embed_sentences
from elmo_plugin.analysis import neighbours as module
from elmo_plugin.analysis.neighbours import (
    ContextIndex,
    NearestRows,
    Query,
    build_index,
    find_neighbours,
    read_query,
    search,
)
from elmo_plugin.corpora.sentence_per_line import read_sentences
from elmo_plugin.util.errors import ConfigurationError
from tests.guide import FIXTURES

TEXT = FIXTURES / "corpora/lm/small/heldout.txt"
SENTENCES = [list(words) for _, words in read_sentences(TEXT)]
QUERIES = [
    Query(("They", "walked", "along", "the", "bank", "of", "the", "river", "."), 4),
    Query(("Unheard-of", "🦉"), 1),
    # A sentence of the text.
    Query(tuple(SENTENCES[3]), 2),
]


@pytest.fixture(scope="module")
def index(shared_bilm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("contexts") / "index"
    build_index(shared_bilm, [TEXT], folder, layers=[0, 1, 2])
    return ContextIndex(folder)


@pytest.fixture(scope="module")
def exact(shared_bilm):
    """Per layer the vectors of all tokens, float64, of length 1."""
    layers = torch.cat(list(embed_sentences(shared_bilm, SENTENCES)), dim=1).double().numpy()
    return layers / numpy.linalg.norm(layers, axis=-1, keepdims=True)


PLACES = [
    (line, position) for line, words in enumerate(SENTENCES) for position in range(len(words))
]


def brute_force(bilm, exact, asked):
    """Per layer the cosine of each allowed place."""
    (layers,) = embed_sentences(bilm, [asked.words])
    vectors = layers[:, asked.position].double().numpy()
    vectors /= numpy.linalg.norm(vectors, axis=-1, keepdims=True)
    return [
        {
            place: float(exact[layer, row] @ vectors[layer])
            for row, place in enumerate(PLACES)
            if tuple(SENTENCES[place[0]]) != asked.words
        }
        for layer in range(3)
    ]


def test_neighbours_are_those_of_all_cosines_in_float64(index, shared_bilm, exact):
    found = list(find_neighbours(index, shared_bilm, QUERIES, 7))
    for asked, neighbours in zip(QUERIES, found):
        expected = brute_force(shared_bilm, exact, asked)
        assert list(neighbours) == [0, 1, 2]
        for layer, contexts in neighbours.items():
            cosines = [context.cosine for context in contexts]
            best = sorted(expected[layer].values(), reverse=True)[:7]
            # Half precision: 11 bits of each number of the index.
            numpy.testing.assert_allclose(cosines, best, atol=2**-11)
            for context in contexts:
                place = (context.line - 1, context.position)
                assert context.words == tuple(SENTENCES[place[0]])
                assert context.cosine == pytest.approx(expected[layer][place], abs=2**-11)


def test_a_result_does_not_depend_on_other_queries(index, shared_bilm, monkeypatch):
    asked = [Query(tuple(words), number % len(words)) for number, words in enumerate(SENTENCES)]
    together = list(find_neighbours(index, shared_bilm, asked))
    alone = [next(find_neighbours(index, shared_bilm, [each])) for each in asked[:20]]
    assert together[:20] == alone
    # Nor on how many share a pass.
    monkeypatch.setattr(module, "_QUERIES_PER_PASS", 7)
    assert list(find_neighbours(index, shared_bilm, asked)) == together


def test_another_bilm_is_refused(index, make_bilm, bilm):
    with pytest.raises(ConfigurationError, match="built with another biLM, computed in float32"):
        next(find_neighbours(index, make_bilm(), QUERIES))
    with pytest.raises(ConfigurationError, match="--bfloat16"):
        next(find_neighbours(index, bilm.to(torch.bfloat16), QUERIES))


def test_a_marked_word_is_read_with_its_position():
    assert read_query("the [bank] of") == Query(("the", "bank", "of"), 1)
    assert read_query(" [[x]]\t[ ] ") == Query(("[x]", "[", "]"), 0)


@pytest.mark.parametrize(
    "sentence, found",
    [
        ("the bank of", "found 0 in 'the bank of'"),
        ("[the] [bank]", "found 2 in"),
        ("the [river bank]", "found 0 in"),
        ("the [bank], of", "found 0 in"),
        ("[]", "found 0 in"),
        ("", "found 0 in ''"),
    ],
)
def test_a_sentence_needs_exactly_one_marked_word(sentence, found):
    with pytest.raises(ValueError, match=f"queries.txt:3: expected one word in brackets.* {found}"):
        read_query(sentence, "queries.txt:3")


@pytest.mark.parametrize(
    "sentence, words, position",
    [
        ("Er sah das [Ufer].", "Er sah das Ufer .", 3),
        ("[Er], z.B., sah „[“ nie", "Er , z.B. , sah „ [ “ nie", 0),
        ("Das Ufer, das [Ufer], z.B.", "Das Ufer , das Ufer , z.B.", 4),
        ("[Er]  ging", "Er ging", 0),
        ("„[Ja]“!", "„ Ja “ !", 1),
    ],
)
def test_a_marked_word_of_raw_text_is_read_with_its_position(sentence, words, position):
    assert read_query(sentence, tokenize="de") == Query(tuple(words.split()), position)


@pytest.mark.parametrize(
    "sentence, message",
    [
        ("das Ufer", "one word in brackets.*found 0"),
        ("[das] [Ufer]", "one word in brackets.*found 2"),
        ("das [U]fer", "x:1: expected 'U' to be one of the words of de, found das Ufer"),
        ("am [10km]", "'10km' to be one of the words of de, found am 10 km"),
    ],
)
def test_a_marked_part_of_raw_text_is_one_word(sentence, message):
    with pytest.raises(ValueError, match=message):
        read_query(sentence, "x:1", "de")


def unit(vectors):
    return vectors / numpy.linalg.norm(vectors, axis=-1, keepdims=True)


def make(num_rows=300, dim=24, seed=0):
    return unit(numpy.random.default_rng(seed).standard_normal((num_rows, dim))).astype("f2")


def make_queries(number=4, dim=24):
    return numpy.random.default_rng(7).standard_normal((number, dim))


def sorted_rows(vectors, query, number, allowed=None):
    """Rows and cosines, in extended precision, by a sort of all."""
    exact, query = vectors.astype(numpy.longdouble), query.astype(numpy.longdouble)
    cosines = {}
    for row in range(len(exact)) if allowed is None else allowed:
        norms = numpy.sqrt(exact[row] @ exact[row]) * numpy.sqrt(query @ query)
        cosines[row] = float(exact[row] @ query / norms)
    # Rows that are equal differ by rounding here.
    order = sorted(cosines, key=lambda row: (-round(cosines[row], 14), row))[:number]
    return order, [cosines[row] for row in order]


def found(vectors, queries, number=5, excluded=()):
    nearest = [NearestRows(vectors, query, number, excluded) for query in queries]
    search(vectors, nearest)
    return [(each.rows.tolist(), each.cosines.tolist()) for each in nearest]


@pytest.fixture
def set_block(monkeypatch):
    """Sets the number of rows that are compared at once."""

    def change(num_rows, dim=24):
        monkeypatch.setattr(module, "_CACHED_BYTES", 4 * dim)
        monkeypatch.setattr(module, "_CACHED_PER_BLOCK", num_rows)

    return change


def check(vectors, queries, number=5, excluded=(), allowed=None):
    for query, (rows, cosines) in zip(queries, found(vectors, queries, number, excluded)):
        expected_rows, expected_cosines = sorted_rows(vectors, query, number, allowed)
        assert rows == expected_rows
        numpy.testing.assert_allclose(cosines, expected_cosines, atol=1e-14)


@pytest.mark.parametrize("number, dim", [(1, 24), (300, 24), (1000, 24), (5, 1), (5, 1024)])
def test_the_nearest_rows_are_those_of_a_sort_of_all_cosines(number, dim):
    check(make(dim=dim), make_queries(dim=dim), number)


def test_rows_that_differ_by_less_than_the_products_can_tell_are_in_their_order(set_block):
    set_block(32)
    generator = numpy.random.default_rng(3)
    vectors = numpy.tile(make(1), (500, 1))
    # By one unit in the last place of half precision, in one dimension each.
    places = generator.integers(0, 24, 500)
    vectors.view("i2")[numpy.arange(500), places] += generator.integers(-1, 2, 500).astype("i2")
    check(vectors, [vectors[0].astype("f8"), *make_queries()], 20)


@pytest.mark.parametrize("rows_per_block", [1, 7, 300, 512])
def test_results_do_not_depend_on_the_blocks(rows_per_block, set_block):
    expected = found(make(), make_queries())
    set_block(rows_per_block)
    assert found(make(), make_queries()) == expected


@pytest.mark.parametrize("rows_per_block", [1, 50, 1000])
def test_excluded_rows_do_not_count(rows_per_block, set_block):
    set_block(rows_per_block)
    excluded = [(0, 20), (45, 55), (299, 300)]
    allowed = [row for row in range(300) if not any(a <= row < b for a, b in excluded)]
    check(make(), make_queries(), 5, excluded, allowed)
    assert found(make(), make_queries(), 5, [(0, 300)]) == [([], [])] * 4


def test_a_vector_of_zeros_is_as_near_as_a_right_angle():
    vectors = numpy.concatenate([make(3), numpy.zeros((1, 24), "f2")])
    ((rows, cosines),) = found(vectors, [-vectors[0].astype("f8")], 4)
    assert cosines[rows.index(3)] == 0.0
    assert found(vectors, [numpy.zeros(24)], 4) == [([0, 1, 2, 3], [0.0] * 4)]
