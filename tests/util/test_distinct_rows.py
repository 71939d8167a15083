import pytest
import torch

from elmo_plugin.util import distinct_rows as module
from elmo_plugin.util.distinct_rows import distinct_rows

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (500, 2), (50, 7)], ids=str)
def test_rows_are_found_once_and_put_back(device, shape):
    rows = torch.randint(0, 5, shape, device=device)
    distinct, places = distinct_rows(rows)
    assert torch.equal(distinct[places], rows)
    assert len(distinct) == len({tuple(row) for row in rows.tolist()})


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
def test_rows_with_the_same_hash_are_kept_apart(monkeypatch):
    monkeypatch.setattr(module.torch, "randint", lambda *_, **__: torch.zeros(2).long())
    # Now the hash is the sum.
    rows = torch.tensor([[1, 2], [2, 1], [1, 2]], device="cuda")
    distinct, places = distinct_rows(rows)
    assert len(distinct) == 2 and torch.equal(distinct[places], rows)
