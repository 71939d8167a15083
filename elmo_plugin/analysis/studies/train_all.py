"""Trains the runs of a study one after the other, in parallel, or as Ray tasks."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Tuple, Union

from elmo_plugin.analysis.studies.study import Run
from elmo_plugin.analysis.studies.train_run import RunFailed, Score, train_run
from elmo_plugin.util.distributed import threads_per_process
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.ray_tasks import run_with_ray

#: A score, or why there is none.
Outcome = Union[Score, RunFailed]


def train_all(
    runs: List[Run],
    out: Path,
    num_workers: int = 1,
    on_start: Callable[[Run], object] = lambda run: None,
) -> Iterator[Tuple[Run, Outcome]]:
    """
    Yields each run with its outcome as it ends, and calls `on_start` before each. `num_workers`
    parallel runs share the cores, unless `OMP_NUM_THREADS` is set.
    """
    num_threads = threads_per_process(num_workers) if num_workers > 1 else 0

    def train(run: Run) -> Outcome:
        on_start(run)
        return _outcome(run, out, num_threads, stop.is_set)

    stop = threading.Event()
    pool = ThreadPoolExecutor(num_workers)
    try:
        futures = {pool.submit(train, run): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # After an interruption, stops runs that have begun and cancels the others.
        stop.set()
        pool.shutdown(cancel_futures=True)


def train_all_with_ray(
    runs: List[Run],
    out: Path,
    address: Optional[str] = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
) -> Iterator[Tuple[Run, Outcome]]:
    """
    Like `train_all`, with a task of `run_with_ray` per run. If a worker dies, its task continues
    from the last checkpoint. All machines need `out` and the corpora at the same paths.
    """
    num_threads = max(1, int(num_cpus))
    calls = [(run, out.resolve(), num_threads) for run in runs]
    for number, outcome in run_with_ray(_outcome, calls, address, num_cpus, num_gpus):
        # Ray itself failed, or a worker could not begin: `_outcome` returns all other errors.
        if isinstance(outcome, Exception) and not isinstance(outcome, RunFailed):
            outcome = RunFailed(str(outcome))
        yield runs[number], outcome


def _outcome(
    run: Run, out: Path, num_threads: int, should_stop: Callable[[], bool] = lambda: False
) -> Outcome:
    try:
        return train_run(run, out, num_threads, should_stop)
    except Exception as error:
        # One run must not stop the others.
        is_known = isinstance(error, (RunFailed, ConfigurationError))
        return RunFailed(str(error) if is_known else repr(error))
