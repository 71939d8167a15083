"""
Builds the experiments of a study, and trains its runs one after the other, in parallel, or as Ray
tasks.
"""

import copy
import io
import logging
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.training.metrics import Metric

from elmo_plugin.analysis.studies.study import Run
from elmo_plugin.analysis.studies.train_run import RunFailed, Score, train_run
from elmo_plugin.util.distributed import threads_per_process
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.ray_tasks import run_with_ray

# Read to build an experiment.
_NUM_INSTANCES = 20

#: A score, or why there is none.
Outcome = Union[Score, RunFailed]


def check_experiments(
    runs: Sequence[Run], on_experiment: Callable[[Run], object] = lambda run: None
) -> None:
    """
    Builds one run of each cell and fraction on its first instances, as `allennlp train` would, and
    calls `on_experiment` before each. Raises `ConfigurationError` with the run's name if that
    fails.
    """
    # Each run's log will have the messages and progress bars.
    disabled = logging.root.manager.disable
    for run in {(run.row, run.column, run.fraction): run for run in runs}.values():
        on_experiment(run)
        logging.disable(logging.WARNING)
        try:
            with redirect_stderr(io.StringIO()):
                _build(run)
        except Exception as error:
            # The classes named in an experiment may raise any exception.
            message = " ".join(str(error).split()) or repr(error)
            raise ConfigurationError(f"{run.name}: {message}") from error
        finally:
            logging.disable(disabled)
    # PyTorch would keep GPU memory of these models while child processes train.
    torch.cuda.empty_cache()


def _build(run: Run) -> None:
    experiment = copy.deepcopy(run.experiment)
    # One process shows the same errors as several.
    experiment.pop("distributed", None)
    for name in ("dataset_reader", "validation_dataset_reader"):
        if name in experiment:
            experiment[name] = _limited(experiment[name])
    with tempfile.TemporaryDirectory() as folder:
        params = Params(experiment)
        # Also removes the seeds, which `TrainModel` does not accept.
        prepare_environment(params)
        built = TrainModel.from_params(params=params, serialization_dir=folder, local_rank=0)
    if run.evaluate and not isinstance(getattr(built.model, "metric", None), Metric):
        raise ConfigurationError(
            f"{type(built.model).__name__}: expected an attribute `metric`, with which elmo-study "
            "evaluates a file, found none."
        )


def _limited(reader: Any) -> Dict[str, Any]:
    """Limits a dataset reader to the first instances."""
    reader = {"type": reader} if isinstance(reader, str) else reader
    limit = reader.get("max_instances") or _NUM_INSTANCES
    return {**reader, "max_instances": min(limit, _NUM_INSTANCES)}


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
    run: Run,
    out: Path,
    num_threads: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    try:
        return train_run(run, out, num_threads, should_stop)
    except Exception as error:
        # One run must not stop the others.
        is_known = isinstance(error, (RunFailed, ConfigurationError))
        return RunFailed(str(error) if is_known else repr(error))
