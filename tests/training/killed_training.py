"""
Training in processes of its own, which can be killed at any moment.

Processes are forked from a server that has imported everything and computed nothing.
"""

import copy
import io
import itertools
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
from allennlp.training.callbacks import TrainerCallback

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload([__name__, "elmo_plugin.plugin", "allennlp.commands.train"])

_KILLED = -signal.SIGKILL


@TrainerCallback.register("elmo-test-stand-still")
class StandingStill(TrainerCallback):
    """
    Waits in a batch, before its checkpoint, while the file `hold_e{epoch}_b{batch}` exists beside
    the folder of the run. Batches are counted from 1, as in the names of checkpoints.
    """

    def on_batch(
        self, trainer, inputs, outputs, metrics, epoch, batch_number, is_training, **kwargs
    ):
        hold = Path(self.serialization_dir).parent / f"hold_e{epoch}_b{batch_number}"
        while is_training and hold.exists():
            time.sleep(0.01)


def train(experiment: Dict[str, Any], folder: Path, last_event: Optional[int] = None) -> bool:
    """
    Trains, or recovers the training in the folder, and returns whether it came to its end. At the
    beginning of event number `last_event` it is killed; each batch is an event, and whatever
    happens to a file.
    """
    process = _SERVER.Process(target=_train, args=(experiment, folder, last_event))
    process.start()
    process.join()
    assert process.exitcode in (0, _KILLED), (folder / "train.log").read_text()[-3000:]
    return process.exitcode == 0


def train_with_kills(
    experiment: Dict[str, Any], folder: Path, last_events: Iterator[Optional[int]]
) -> int:
    """Trains and recovers with a kill at each of the events. Returns the number of starts."""
    for number, last_event in enumerate(last_events, start=1):
        if train(experiment, folder, last_event):
            return number
    raise AssertionError("killed at all events")


def count_events(folder: Path) -> List[str]:
    """The events since the last start."""
    return (folder / "events.txt").read_text().split("\n")[:-1]


def batch_losses(folder: Path, rank: int = 0) -> List[float]:
    """Losses of all batches in training, of one process."""
    lines = (folder / f"losses-{rank}.txt").read_text().split()
    return [json.loads(line) for line in lines]


def _train(experiment: Dict[str, Any], folder: Path, last_event: Optional[int]) -> None:
    # Other tests may have started the server without it.
    from allennlp.commands.train import train_model
    from allennlp.common import Params

    import elmo_plugin.plugin  # noqa: F401

    folder.mkdir(exist_ok=True)
    log = os.open(folder / "train.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    torch.set_num_threads(1)
    run = folder / "run"
    _watch(folder, last_event)
    try:
        recover = (run / "config.json").exists()
        train_model(Params(copy.deepcopy(experiment)), run, recover=recover, force=not recover)
    except torch.multiprocessing.ProcessExitedException as error:
        if error.signal_name != "SIGKILL":
            raise
        os.kill(os.getpid(), signal.SIGKILL)


def _watch(folder: Path, last_event: Optional[int]) -> None:
    """Makes this process, and those it forks, count events and kill themselves at the last one."""
    import allennlp.commands.train
    import allennlp.common.util
    import allennlp.training.gradient_descent_trainer as trainer
    from allennlp.data import Vocabulary

    numbers = itertools.count(1)
    events = open(folder / "events.txt", "w", buffering=1)  # noqa: SIM115

    def watched(name: str, function: Callable, before_kill: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            if _rank() == 0:
                events.write(name + "\n")
                if next(numbers) == last_event:
                    before_kill(*args)
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    for owner, name, before_kill in (
        (Vocabulary, "save_to_files", _write_half_a_vocabulary),
        (trainer.GradientDescentTrainer, "batch_outputs", _do_nothing),
        (torch, "save", _save_half(torch.save)),
        (os, "replace", _do_nothing),
        (os, "remove", _do_nothing),
        (trainer, "hardlink_or_copy", _do_nothing),
        (allennlp.common.util, "dump_metrics", _write_half_of_the_metrics),
        (allennlp.commands.train, "archive_model", _write_half_an_archive),
    ):
        setattr(owner, name, watched(name, getattr(owner, name), before_kill))
    outputs = trainer.GradientDescentTrainer.batch_outputs
    trainer.GradientDescentTrainer.batch_outputs = _recorded(outputs, folder)
    # Forked processes have what this one has imported, and watch as it does.
    start = torch.multiprocessing.start_processes
    torch.multiprocessing.spawn = lambda function, args, nprocs: start(
        function, args, nprocs, start_method="fork"
    )


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _recorded(function: Callable, folder: Path) -> Callable:
    def batch_outputs(trainer: Any, batch: Any, for_training: bool) -> Any:
        outputs = function(trainer, batch, for_training)
        if for_training:
            with open(folder / f"losses-{_rank()}.txt", "a") as opened:
                opened.write(f"{outputs['loss'].item()!r}\n")
        return outputs

    return batch_outputs


def _do_nothing(*_: Any) -> None:
    pass


def _save_half(save: Callable) -> Callable:
    def save_half(state: Any, opened: Any) -> None:
        buffer = io.BytesIO()
        save(state, buffer)
        half = buffer.getvalue()[: buffer.tell() // 2]
        if hasattr(opened, "write"):
            opened.write(half)
            opened.flush()
        else:
            Path(opened).write_bytes(half)

    return save_half


def _write_half_a_vocabulary(_: Any, directory: str) -> None:
    os.makedirs(directory, exist_ok=True)
    Path(directory, "tokens.txt").write_text("@@UNK")


def _write_half_of_the_metrics(path: str, *_: Any) -> None:
    Path(path).write_text('{"best_epo')


def _write_half_an_archive(folder: Path, *_: Any) -> None:
    Path(folder, "model.tar.gz").write_bytes(b"half an archive")
