"""Trains and evaluates the runs of a study, and continues them after a kill."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

import torch

from elmo_plugin.analysis.studies.study import Run, digest_and_files, validation_metric
from elmo_plugin.util.atomic_write import write_json
from elmo_plugin.util.bfloat16 import CPU_HAS_BFLOAT16
from elmo_plugin.util.distributed import end_with_parent, threads_per_process
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import FolderLock, lock_folder, wait_for_lock

#: What `results.json` keeps of a run.
Score = Dict[str, Any]
#: Where a score has bootstrap samples, the better kind first: of whole groups, and of instances.
SAMPLES = ("group_samples", "samples")

_NUM_LOG_LINES = 8
# Seconds between two calls of `should_stop`.
_SECONDS = 0.5
# Length of a run's folder name before the digest; file systems take 255 bytes.
_MAX_NAME_LENGTH = 120
# Time for another process that trains the run to end: see `wait_for_lock`.
_LOCK_SECONDS = 60.0
_EVALUATION = json.dumps({"evaluation": {"type": "elmo-bootstrap"}})
_PACKAGES = ("torch", "numpy", "allennlp", "elmo-plugin")


class RunFailed(Exception):
    """A run ended with an error. The message shows the last lines of its log."""


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
    stop = threading.Event()

    def train(run: Run) -> Outcome:
        on_start(run)
        try:
            return train_run(run, out, num_threads, stop.is_set)
        except Exception as error:
            # One run must not stop the others.
            is_known = isinstance(error, (RunFailed, ConfigurationError))
            return RunFailed(str(error) if is_known else repr(error))

    pool = ThreadPoolExecutor(num_workers)
    try:
        futures = {pool.submit(train, run): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # After an interruption, stops runs that have begun and cancels the others.
        stop.set()
        pool.shutdown(cancel_futures=True)


def folder_of(run: Run, out: Path) -> Path:
    """The run's folder within the study's folder `out`. Its name ends with the digest."""
    # The run may have been begun under another name.
    for begun in sorted((out / "runs").glob(f"*-{run.digest}")):
        return begun
    name = re.sub(r"[^A-Za-z0-9.]+", "-", run.name.replace("%", "percent")).strip("-").lower()
    return out / "runs" / f"{name[:_MAX_NAME_LENGTH]}-{run.digest}"


def train_run(
    run: Run,
    out: Path,
    num_threads: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> Score:
    """
    Trains and evaluates a run in child processes, in `folder_of(run, out)`. Continues what a killed
    call began. Each child process has `num_threads` threads; 0 leaves the choice to PyTorch.
    `should_stop` is called twice a second, and stops the run if it returns true.

    Raises `RunFailed` if a child process fails, the run is stopped, or a file that it reads has
    changed since the study was read. Raises `FolderLocked` if another process trains the run.

    # Returns

    `Score`
        `training` has the numbers in `metrics.json` (`before_*`: before fine-tuning), and `history`
        the validation metric after each epoch if higher is better. `evaluation` has the numbers of
        `allennlp evaluate`, and `samples` the bootstrap samples of each metric; both are `None`
        without a file to evaluate. `group_samples` are of whole groups of instances, and `None` if
        the task has none. Scores of older versions lack them.
    """
    _check_files(run)
    folder = folder_of(run, out)
    lock = wait_for_lock(partial(lock_folder, folder), _LOCK_SECONDS)
    call = partial(_call, folder, lock, num_threads, should_stop)
    training = folder / "training"
    before = training / "metrics_before.json"
    try:
        if not (folder / "trained").exists():
            _train(run, folder, call)
        evaluation, samples, group_samples = _evaluated(run, folder, call)
        before_tuning = _numbers(before) if before.exists() else {}
        return {
            **{name: getattr(run, name) for name in ("name", "digest", "fraction", "seed")},
            "experiment": _from_here(run.experiment),
            "minutes": round(_seconds(folder) / 60.0, 4),
            "versions": _versions(),
            "files": _from_here(_check_files(run)),
            "training": {
                **_numbers(training / "metrics.json"),
                **{f"before_{name}": value for name, value in before_tuning.items()},
            },
            "history": _history(training, run.experiment),
            "evaluation": evaluation,
            "samples": samples,
            "group_samples": group_samples,
        }
    finally:
        lock.release()


def _check_files(run: Run) -> Dict[str, str]:
    """Returns the hashes of the files that the run reads, or raises `RunFailed` if one changed."""
    digest, files = digest_and_files(run.experiment, run.evaluate)
    if digest != run.digest:
        raise RunFailed(
            "a file that it reads has changed since the study began. Run the same command again"
        )
    return files


def _train(run: Run, folder: Path, call: Callable[..., None]) -> None:
    experiment, training = folder / "experiment.json", folder / "training"
    # Training can continue only with its configuration and unchanged paths.
    is_same = experiment.exists() and _read(experiment) == run.experiment
    if training.exists() and not (is_same and (training / "config.json").exists()):
        shutil.rmtree(training)
    write_json(experiment, run.experiment)
    recover = ["--recover"] if training.exists() else []
    call("train", str(experiment), "-s", str(training), *recover)
    (folder / "trained").touch()


def _evaluated(run: Run, folder: Path, call: Callable[..., None]) -> Any:
    """Returns the numbers of the evaluation, and the samples of each, also of groups."""
    if run.evaluate is None:
        return None, None, None
    scores, samples = folder / "evaluation.json", folder / "samples.json"
    # The samples are written last.
    if not samples.exists():
        outputs = ["--output-file", str(scores), "--predictions-output-file", str(samples)]
        archive = str(folder / "training" / "model.tar.gz")
        device = "0" if torch.cuda.is_available() else "-1"
        # `allennlp evaluate` splits a path at commas, unless it is a JSON string.
        corpus = json.dumps(run.evaluate)
        call("evaluate", archive, corpus, *outputs, "-o", _EVALUATION, "--cuda-device", device)
    content = _read(samples)
    return _numbers(scores), content["metrics"], content.get("group_metrics")


def _call(
    folder: Path,
    lock: FolderLock,
    num_threads: int,
    should_stop: Callable[[], bool],
    *arguments: str,
) -> None:
    log, start = folder / "log.txt", time.monotonic()
    threads = {"OMP_NUM_THREADS": str(num_threads)} if num_threads else {}
    command = [sys.executable, "-m", "allennlp", arguments[0], "--file-friendly-logging"]
    command += ["--include-package", "elmo_plugin.plugin", *arguments[1:]]
    with open(log, "ab") as output:
        # The child inherits the lock, and holds it if it outlives this process.
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **threads},
            pass_fds=[lock.descriptor],
            preexec_fn=partial(end_with_parent, os.getpid(), signal.SIGTERM),
        )
        try:
            code = _wait(process, should_stop)
        finally:
            # This has an effect only after an exception, such as an interruption.
            process.terminate()
            process.wait()
            seconds = _seconds(folder) + time.monotonic() - start
            write_json(folder / "seconds", round(seconds, 3))
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join(f"    {line}" for line in lines[-_NUM_LOG_LINES:])
        raise RunFailed(f"allennlp {arguments[0]} failed (exit code {code}), {log}:\n{last}")


def _wait(process: subprocess.Popen, should_stop: Callable[[], bool]) -> int:
    while True:
        try:
            return process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            if should_stop():
                raise RunFailed("stopped") from None


def _seconds(folder: Path) -> float:
    """The duration of all calls, failed ones included."""
    path = folder / "seconds"
    return _read(path) if path.exists() else 0.0


def _from_here(value: Any) -> Any:
    """Makes paths below the current folder relative."""
    here = json.dumps(f"{os.getcwd()}/").removesuffix('"')
    return json.loads(json.dumps(value).replace(here, '"'))


def _history(training: Path, experiment: Dict[str, Any]) -> List[Optional[float]]:
    """The validation metric after each epoch; empty if lower is better, as for the loss."""
    signed = validation_metric(experiment)
    if signed.startswith("-"):
        return []
    paths = training.glob("metrics_epoch_*.json")
    epochs = sorted(paths, key=lambda path: int(path.stem.rpartition("_")[2]))
    return [_read(path).get(f"validation_{signed.lstrip('+')}") for path in epochs]


def _numbers(path: Path) -> Dict[str, float]:
    return {name: value for name, value in _read(path).items() if type(value) in (int, float)}


def _versions() -> Dict[str, str]:
    # On a processor without bfloat16, `mixed_precision` is float32.
    cpu = torch.backends.cpu.get_cpu_capability() + (", bfloat16" if CPU_HAS_BFLOAT16 else "")
    found = {"python": sys.version.split()[0], "cpu": cpu}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
