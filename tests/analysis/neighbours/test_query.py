from itertools import chain

import numpy
import pytest
import torch

from elmo_plugin import embed_sentences
from elmo_plugin.analysis.neighbours import (
    ContextIndex,
    IndexOptions,
    Query,
    build_index,
    find_neighbours,
    query,
    read_query,
)
from elmo_plugin.corpora.sentence_per_line import read_sentences
from elmo_plugin.util.errors import ConfigurationError
from tests.guide import FIXTURES
from tests.html import shown, text_of

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
    build_index(shared_bilm, [TEXT], folder, IndexOptions(layers=[0, 1, 2]))
    return ContextIndex(folder)


@pytest.fixture(scope="module")
def exact(shared_bilm):
    """Per layer the vectors of all tokens, float64, of length 1."""
    layers = torch.cat(list(embed_sentences(shared_bilm, SENTENCES)), dim=1).double().numpy()
    return layers / numpy.linalg.norm(layers, axis=-1, keepdims=True)


PLACES = [
    (line, position) for line, words in enumerate(SENTENCES) for position in range(len(words))
]


def brute_force(bilm, exact, asked, same_word):
    """Per layer the cosine of each allowed place."""
    (layers,) = embed_sentences(bilm, [asked.words])
    vectors = layers[:, asked.position].double().numpy()
    vectors /= numpy.linalg.norm(vectors, axis=-1, keepdims=True)
    word = asked.words[asked.position]
    return [
        {
            place: float(exact[layer, row] @ vectors[layer])
            for row, place in enumerate(PLACES)
            if tuple(SENTENCES[place[0]]) != asked.words
            and (not same_word or SENTENCES[place[0]][place[1]] == word)
        }
        for layer in range(3)
    ]


@pytest.mark.parametrize("same_word", [False, True])
def test_neighbours_are_those_of_all_cosines_in_float64(index, shared_bilm, exact, same_word):
    found = list(find_neighbours(index, shared_bilm, QUERIES, 7, same_word))
    for asked, neighbours in zip(QUERIES, found):
        expected = brute_force(shared_bilm, exact, asked, same_word)
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


def test_in_the_token_layer_occurrences_of_a_word_are_in_the_order_of_the_text(index, shared_bilm):
    word = "the"
    (neighbours,) = find_neighbours(index, shared_bilm, [Query(("Not", "in", word), 2)], 9)
    places = [place for place in PLACES if SENTENCES[place[0]][place[1]] == word][:9]
    assert [(each.line - 1, each.position) for each in neighbours[0]] == places
    assert [each.cosine for each in neighbours[0]] == pytest.approx([1.0] * 9, abs=1e-4)


def test_the_own_sentence_is_left_out_wherever_it_is(index, shared_bilm):
    asked = QUERIES[2]
    (neighbours,) = find_neighbours(index, shared_bilm, [asked], 50)
    assert all(each.words != asked.words for each in chain(*neighbours.values()))


def test_a_notebook_shows_contexts(index, shared_bilm):
    (neighbours,) = find_neighbours(index, shared_bilm, QUERIES[:1], 2)
    tree = shown(neighbours)
    assert [each.text for each in tree.iter("p")] == ["layer 0", "layer 1", "layer 2"]
    rows = [text_of(row) for row in tree.iter("tr") if row.find("td") is not None]
    assert rows == [
        f"{each.cosine:.4f} {each.line} {' '.join(each.words)}"
        for contexts in neighbours.values()
        for each in contexts
    ]
    marked = [text_of(each) for each in tree.iter("mark")]
    assert marked == [
        each.words[each.position] for contexts in neighbours.values() for each in contexts
    ]


def test_a_result_does_not_depend_on_other_queries(index, shared_bilm, monkeypatch):
    asked = [Query(tuple(words), number % len(words)) for number, words in enumerate(SENTENCES)]
    together = list(find_neighbours(index, shared_bilm, asked))
    alone = [next(find_neighbours(index, shared_bilm, [each])) for each in asked[:20]]
    assert together[:20] == alone
    # Nor on how many share a pass.
    monkeypatch.setattr(query, "_QUERIES_PER_PASS", 7)
    assert list(find_neighbours(index, shared_bilm, asked)) == together


def test_a_word_that_the_text_does_not_have_has_no_contexts_of_its_own(index, shared_bilm):
    (neighbours,) = find_neighbours(index, shared_bilm, [QUERIES[1]], same_word=True)
    assert neighbours == {0: [], 1: [], 2: []}


@pytest.mark.parametrize("number", [0, -2])
def test_at_least_one_neighbour_is_asked_for(index, shared_bilm, number):
    with pytest.raises(ConfigurationError, match=f"at least 1, found {number}"):
        list(find_neighbours(index, shared_bilm, QUERIES, number))


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
