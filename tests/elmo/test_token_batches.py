import random

import pytest

from elmo_plugin.elmo import token_batches as module
from elmo_plugin.elmo.token_batches import token_batches


@pytest.mark.parametrize("batch_size", [None, 1, 3])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_batches_hold_every_sentence_once_and_no_more_than_their_bounds(
    monkeypatch, batch_size, is_sorted
):
    monkeypatch.setattr(module, "MAX_TOKENS", 50)
    generator = random.Random(0)
    for _ in range(50):
        lengths = [generator.choice([0, 1, 5, 20, 49, 50, 51, 200]) for _ in range(20)]
        lengths = sorted(lengths) if is_sorted else lengths
        batches = [lengths[batch] for batch in token_batches(lengths, batch_size)]
        assert sum(batches, []) == lengths
        for batch in batches:
            assert len(batch) == 1 or len(batch) * max(batch) <= 50
            assert batch_size is None or len(batch) <= batch_size


def test_a_batch_ends_no_earlier_than_it_must(monkeypatch):
    monkeypatch.setattr(module, "MAX_TOKENS", 10)
    assert list(token_batches([1, 2, 5, 5])) == [slice(0, 2), slice(2, 4)]
    assert list(token_batches([5] * 5, batch_size=2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(token_batches([])) == []


def test_batches_for_a_gpu_are_larger():
    lengths = [64] * 1100
    assert [batch.stop - batch.start for batch in token_batches(lengths)][:2] == [128, 128]
    found = [batch.stop - batch.start for batch in token_batches(lengths, device_type="cuda")]
    assert found == [1024, 76]
