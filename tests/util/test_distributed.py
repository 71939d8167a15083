import pytest

from elmo_plugin.util.distributed import (
    gathered,
    rank_and_world_size,
    sum_over_processes,
    threads_per_process,
)
from tests.processes import in_two_processes


def test_a_process_by_itself_is_the_only_one():
    assert rank_and_world_size() == (0, 1)
    assert gathered("a") == ["a"]
    assert sum_over_processes(3) == 3 and sum_over_processes(0.1) == 0.1


def _check(rank: int) -> None:
    assert rank_and_world_size() == (rank, 2)
    assert gathered({"rank": rank}) == [{"rank": 0}, {"rank": 1}]
    total = sum_over_processes(rank + 1)
    assert total == 3 and isinstance(total, int)
    assert sum_over_processes(0.5 * rank) == 0.5
    # Exact in float64 only.
    assert sum_over_processes(2.0**24 + rank) == 2.0**25 + 1


def test_numbers_are_summed_over_processes(tmp_path):
    in_two_processes(_check, tmp_path)


@pytest.mark.parametrize(
    "variable, num_processes, expected", [(None, 1, 5), ("", 2, 2), (None, 9, 1), ("5", 2, 5)]
)
def test_processes_share_the_threads_unless_their_number_is_set(
    monkeypatch, variable, num_processes, expected
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr("torch.get_num_threads", lambda: 5)
    assert threads_per_process(num_processes) == expected
