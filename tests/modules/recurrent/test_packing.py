import random

import pytest
import torch

from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.util.errors import ConfigurationError


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_those_counted_one_by_one(seed):
    generator = random.Random(seed)
    num_tokens = generator.randint(0, 6)
    lengths = [generator.randint(0, num_tokens) for _ in range(generator.randint(1, 6))]
    packing = Packing.from_lengths(torch.tensor(lengths), num_tokens)

    # Longest first; Python's sort keeps the order of equals, too.
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    forward, backward, batch_sizes = [], [], []
    for step in range(num_tokens):
        rows = [row for row in order if lengths[row] > step]
        forward += [row * num_tokens + step for row in rows]
        backward += [row * num_tokens + lengths[row] - 1 - step for row in rows]
        batch_sizes += [len(rows)] if rows else []

    assert packing.order.tolist() == order
    assert packing.batch_sizes == batch_sizes
    assert packing.forward_index.tolist() == forward
    assert packing.backward_index.tolist() == backward


def test_the_reversal_reverses_each_sentence():
    mask = torch.arange(5) < torch.tensor([3, 0, 5, 1]).unsqueeze(1)
    packing = Packing.from_mask(mask)
    tokens = torch.arange(mask.numel())
    packed = tokens[packing.forward_index]
    assert torch.equal(packed[packing.reversal()], tokens[packing.backward_index])
    assert torch.equal(packed[packing.reversal()][packing.reversal()], packed)


def test_padding_before_a_token_is_refused():
    with pytest.raises(ConfigurationError, match="found padding before a token. Pad sentences"):
        Packing.from_mask(torch.tensor([[False, True]]))
