import random

import numpy
import torch

from elmo_plugin.training.recoverable_trainer import random_states, set_random_states

CPU = torch.device("cpu")


def draws():
    return [
        random.random(),
        random.gauss(0, 1),
        numpy.random.rand(),
        numpy.random.randn(),
        torch.rand(()).item(),
    ]


def test_restored_states_give_the_same_random_numbers(tmp_path):
    # Half of a pair of normal numbers is left for the next draw.
    draws()
    torch.save(random_states(CPU), tmp_path / "states")
    first, second = draws(), draws()
    set_random_states(torch.load(tmp_path / "states", weights_only=True), CPU)
    assert [draws(), draws()] == [first, second]
    assert first != second
