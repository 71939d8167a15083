import torch

from elmo_plugin.util.distributed import gathered, rank_and_world_size, sum_over_processes


def test_a_process_by_itself_is_the_only_one():
    assert rank_and_world_size() == (0, 1)
    assert gathered("a") == ["a"]
    assert sum_over_processes(3) == 3 and sum_over_processes(0.1) == 0.1


def _check(rank: int, folder: str) -> None:
    store = f"file://{folder}/store"
    torch.distributed.init_process_group("gloo", store, rank=rank, world_size=2)
    assert rank_and_world_size() == (rank, 2)
    assert gathered({"rank": rank}) == [{"rank": 0}, {"rank": 1}]
    total = sum_over_processes(rank + 1)
    assert total == 3 and isinstance(total, int)
    assert sum_over_processes(0.5 * rank) == 0.5
    # Exact in float64 only.
    assert sum_over_processes(2.0**24 + rank) == 2.0**25 + 1
    torch.distributed.destroy_process_group()


def test_numbers_are_summed_over_processes(tmp_path):
    torch.multiprocessing.spawn(_check, (str(tmp_path),), nprocs=2)
