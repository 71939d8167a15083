import pytest

from elmo_plugin.util.threads import threads_per_process


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
