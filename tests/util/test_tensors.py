import pytest
import torch

from elmo_plugin.util.tensors import by_hash, distinct_rows

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.mark.parametrize("function", [distinct_rows, by_hash])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 1), (500, 2), (50, 7)], ids=str)
def test_rows_are_found_once_and_put_back(device, shape, function):
    rows = torch.randint(0, 5, shape, device=device)
    distinct, places = function(rows)
    assert torch.equal(distinct[places], rows)
    assert len(distinct) == len({tuple(row) for row in rows.tolist()})


@pytest.mark.parametrize("device", DEVICES)
def test_no_rows_are_no_rows(device):
    distinct, places = distinct_rows(torch.zeros(0, 3, dtype=torch.long, device=device))
    assert distinct.shape == (0, 3) and places.shape == (0,)


@pytest.mark.parametrize("device", DEVICES)
def test_different_rows_with_the_same_hash_are_noticed(monkeypatch, device):
    # The hash is the sum now.
    monkeypatch.setattr(torch, "randint", lambda *_, **__: torch.zeros(2, dtype=torch.long))
    assert by_hash(torch.tensor([[1, 2], [2, 1]], device=device)) is None
    assert by_hash(torch.tensor([[1, 2], [1, 2]], device=device)) is not None
    rows = torch.tensor([[1, 2], [2, 1], [1, 2]], device=device)
    distinct, places = distinct_rows(rows)
    assert len(distinct) == 2 and torch.equal(distinct[places], rows)
