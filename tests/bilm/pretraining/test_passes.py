import numpy
import pytest

from elmo_plugin.bilm import CharacterMap
from elmo_plugin.bilm.pretraining.batches import BatchBuilder, SentenceBatches, StreamBatches

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d", "e"]
SOFTMAX_IDS = {word: number for number, word in enumerate(WORDS)}
TWO_SENTENCES = [["a", "b", "c"], ["d", "odd"]]


@pytest.fixture
def characters():
    return CharacterMap()


@pytest.fixture
def builder(characters):
    return BatchBuilder(characters, SOFTMAX_IDS)


def read_words(batch, name, characters):
    """The words behind `forward_ids` or `backward_ids`, found by their characters."""
    words = {characters.word_ids(word).tobytes(): word for word in [*WORDS, "odd"]}
    rows = batch["characters"].astype(numpy.int32)
    return [words[rows[row].tobytes()] for row in batch[name].tolist()]


def predicted_words(batch, name):
    return [WORDS[number] for number in batch[name].tolist()]


def test_both_directions_of_two_sentences_by_hand(builder, characters):
    (plan,) = SentenceBatches(100).plans(iter(TWO_SENTENCES))
    batch = builder.build(plan)
    assert batch["batch_sizes"] == [2, 2, 2, 1]
    # First position of both sentences, second of both, third of both, fourth of the longer.
    assert read_words(batch, "forward_ids", characters) == "<S> <S> a d b odd c".split()
    assert predicted_words(batch, "forward_targets") == "a d b <UNK> c </S> </S>".split()
    assert read_words(batch, "backward_ids", characters) == "</S> </S> c odd b d a".split()
    assert predicted_words(batch, "backward_targets") == "c <UNK> b d a <S> <S>".split()


def test_streams_by_hand(builder, characters):
    plans = list(StreamBatches(1, 4).plans(iter([["a", "b"], ["c", "d", "e"]])))
    first, second = map(builder.build, plans)
    assert read_words(first, "forward_ids", characters) == "<S> a b <S>".split()
    assert predicted_words(first, "forward_targets") == "a b </S> c".split()
    assert read_words(first, "backward_ids", characters) == "</S> b a </S>".split()
    assert predicted_words(first, "backward_targets") == "b a <S> e".split()
    assert read_words(second, "forward_ids", characters) == "c d e".split()
    assert predicted_words(second, "forward_targets") == "d e </S>".split()
    assert read_words(second, "backward_ids", characters) == "e d c".split()
    assert predicted_words(second, "backward_targets") == "d c <S>".split()
    assert (first["batch_sizes"], second["batch_sizes"]) == ([1] * 4, [1] * 3)


def test_words_that_are_only_predicted_have_no_characters(builder, characters):
    first, _ = StreamBatches(1, 2).plans(iter([["a", "b", "c"]]))
    batch = builder.build(first)
    # `b` is what both directions predict next.
    read = (
        read_words(batch, "forward_ids", characters),
        read_words(batch, "backward_ids", characters),
    )
    assert read == (["<S>", "a"], ["</S>", "c"])
    assert len(batch["characters"]) == 4


def test_one_direction_leaves_the_other_out(characters):
    (plan,) = SentenceBatches(100).plans(iter(TWO_SENTENCES))
    both = BatchBuilder(characters, SOFTMAX_IDS).build(plan)
    forward = BatchBuilder(characters, SOFTMAX_IDS, bidirectional=False).build(plan)
    assert not {"backward_ids", "backward_targets"} & forward.keys()
    for name in ("forward_ids", "forward_targets", "batch_sizes"):
        assert numpy.array_equal(both[name], forward[name])
    # Nobody reads `</S>`.
    assert len(forward["characters"]) == len(both["characters"]) - 1
