from collections import Counter
from random import Random

import pytest

from elmo_plugin.bilm.pretraining.batches import SentenceBatches, StreamBatches, TextPass
from elmo_plugin.bilm.pretraining.text import Text
from elmo_plugin.util.errors import ConfigurationError

KINDS = {
    "sentences": lambda: SentenceBatches(60),
    "streams": lambda: StreamBatches(batch_size=6, num_steps=4),
}


def sentences(number, seed=0, longest=30):
    """Sentences of words that occur once."""
    random = Random(seed)
    lengths = [random.randint(1, longest) for _ in range(number)]
    return [[f"{n}.{word}" for word in range(length)] for n, length in enumerate(lengths)]


def positions(plans):
    """How often each position of each sentence is read."""
    return Counter(
        (tuple(words), position)
        for plan in plans
        for row in plan
        for words, start, stop in row.segments
        for position in range(start, stop)
    )


def every_position_once(text):
    marked = [("<S>", *words, "</S>") for words in text]
    return {(words, position): 1 for words in marked for position in range(len(words) - 1)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [0, 1, 2, 7, 100, 2000])
@pytest.mark.parametrize("order", [None, 3])
def test_every_token_is_predicted_once(kind, number, order):
    text = sentences(number)
    plans = KINDS[kind]().plans(iter(text), order and Random(order))
    assert positions(plans) == every_position_once(text)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_longest_first(kind):
    for plan in KINDS[kind]().plans(iter(sentences(500))):
        lengths = [row.length for row in plan]
        assert lengths == sorted(lengths, reverse=True) and lengths[-1] > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_every_process_has_a_row_of_every_batch_and_together_they_have_all(kind, world_size):
    text = sentences(300)
    plans = list(KINDS[kind]().plans(iter(text), Random(0), world_size))
    for plan in plans:
        assert {row.number % world_size for row in plan} == set(range(world_size))
    assert positions(plans) == every_position_once(text)


def test_the_number_of_processes_does_not_change_batches_of_sentences():
    one, three = (
        list(SentenceBatches(400).plans(iter(sentences(2000)), Random(0), world_size))
        for world_size in (1, 3)
    )
    assert len(one) > 50 and one == three


@pytest.mark.parametrize("kind", KINDS)
def test_too_little_text_for_the_processes_is_refused(kind, tmp_path):
    for number, world_size in ((2, 3), (100, 40)):
        text = tmp_path / f"{number}.txt"
        text.write_text("\n".join(" ".join(words) for words in sentences(number)))
        read = TextPass(Text(text), KINDS[kind](), None, process=(0, world_size))
        if number == 2 or kind == "streams":
            with pytest.raises(
                ConfigurationError, match=f"{world_size} processes, found [26] rows"
            ):
                list(read.plans())


def test_batches_of_sentences_have_about_the_same_number_of_predictions():
    batches = SentenceBatches(60)
    plans = list(batches.plans(iter(sentences(3000))))
    sizes = [sum(row.length for row in plan) for plan in plans]
    assert min(sizes) > 60 - 31 and max(sizes) < 60 + 31
    assert abs(sum(sizes) / len(sizes) - 60) < 2


def test_sentences_of_a_batch_have_about_the_same_length():
    plans = SentenceBatches(60).plans(iter(sentences(3000)))
    lengths = [[row.length for row in plan] for plan in plans]
    wasted = sum(max(rows) * len(rows) - sum(rows) for rows in lengths)
    assert wasted < 0.03 * sum(map(sum, lengths))


def test_shuffled_batches_are_the_same_batches_in_another_order():
    plain, shuffled, again, other = (
        list(SentenceBatches(60).plans(iter(sentences(1000)), order and Random(order)))
        for order in (None, 1, 1, 2)
    )
    assert shuffled == again != other
    assert plain != shuffled and sorted(plain) == sorted(shuffled)


def test_a_stream_reads_on_where_it_stopped():
    text = [["a", "b", "c"], ["d"], ["e", "f"], ["g"]]
    plans = list(StreamBatches(batch_size=2, num_steps=3).plans(iter(text)))
    first, second, third, fourth = (["<S>", *words, "</S>"] for words in text)
    assert plans == [
        [(0, [(first, 0, 3)]), (1, [(second, 0, 2), (third, 0, 1)])],
        [(0, [(first, 3, 4), (fourth, 0, 2)]), (1, [(third, 1, 3)])],
    ]


def test_full_windows_have_all_rows_in_their_places():
    plans = list(StreamBatches(batch_size=6, num_steps=4).plans(iter(sentences(100))))
    full = [plan for plan in plans if all(row.length == 4 for row in plan) and len(plan) == 6]
    assert len(full) > 0.9 * len(plans)
    assert all([row.number for row in plan] == list(range(6)) for plan in full)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_made_while_the_text_is_read(kind):
    num_read = 0

    def counted():
        nonlocal num_read
        for words in sentences(5000):
            num_read += 1
            yield words

    next(KINDS[kind]().plans(counted()))
    assert num_read < 500
