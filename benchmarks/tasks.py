"""
Seconds of a task's training epoch: without ELMo, with ELMo computed each time, and with ELMo from
a cache on disk, in the epoch that fills it and in those that follow.

    python benchmarks/tasks.py                       # $ELMO_DATA/srl, the first 2,000 predicates
    python benchmarks/tasks.py --task srl --instances 500 --epochs 3 --output results.json

Needs the training files of the task below ELMO_DATA, and word vectors in ELMO_GLOVE. The
experiments are those of the project, but for the number of instances and validation, which is left
out. Their epochs take turns; the cache begins as an empty folder. `peer` is the same task without
ELMo. The median of the epochs counts, but for the first ones: those warm up, and fill the cache.
"""

import gc
import json
import statistics
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List

from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.training import GradientDescentTrainer
from common import Row, measuring_parser, report

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"
FLOOR, AIM = "<= 1.25x", "<= 1.1x"


@dataclass(frozen=True)
class Task:
    """The experiments of a task, and what an instance of it is called."""

    name: str
    without_elmo: Path
    with_elmo: Path
    instances: str


TASKS = {
    "srl": Task("SRL", EXPERIMENTS / "srl.jsonnet", EXPERIMENTS / "srl_elmo.jsonnet", "predicates"),
}


def render(experiment: Path, settings: str, num_instances: int) -> Params:
    """An experiment with other settings, read as `allennlp train` does, without validation."""
    source = f"""
    (import {json.dumps(str(experiment))}) {{
      settings+: {settings},
      dataset_reader+: {{ max_instances: {num_instances} }},
      validation_data_path:: null,
    }}
    """
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "experiment.jsonnet")
        path.write_text(source, encoding="utf-8")
        return Params.from_file(path)


def build_trainer(
    params: Params, directory: Path, task: Task, wanted: int
) -> GradientDescentTrainer:
    """As `allennlp train` does, up to the first epoch."""
    place = params["train_data_path"]
    prepare_environment(params)
    directory.mkdir()
    trainer = TrainModel.from_params(
        params=params, serialization_dir=str(directory), local_rank=0
    ).trainer
    # Reads what the loader has not read yet, so that no epoch has to.
    found = sum(1 for _ in trainer.data_loader.iter_instances())
    if found < wanted:
        raise SystemExit(
            f"{place}: expected at least {wanted:,} {task.instances} to train on, found {found:,}. "
            "Set ELMO_DATA to a folder that has them, or ask for fewer --instances."
        )
    return trainer


def time_epochs(
    trainers: Dict[str, GradientDescentTrainer], num_epochs: int
) -> Dict[str, List[float]]:
    """Seconds of each trainer's epochs; all train one epoch before any trains the next."""
    seconds: Dict[str, List[float]] = {name: [] for name in trainers}
    # `train` knows no pause between epochs, so what it does is done here.
    for trainer in trainers.values():
        for callback in trainer._callbacks:
            callback.on_start(trainer, is_primary=True)
    for epoch in range(num_epochs):
        for name, trainer in trainers.items():
            gc.collect()
            start = time.perf_counter()
            trainer._train_epoch(epoch)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def build_variants(
    task: Task, directory: Path, num_instances: int
) -> Dict[str, GradientDescentTrainer]:
    """A trainer without ELMo, one that computes it, one that keeps it below `directory`."""
    cache = json.dumps(str(directory / "cache"))
    variants = {
        "without": (task.without_elmo, "{}"),
        "computed": (task.with_elmo, "{ elmo+: { cache: false } }"),
        "cached": (task.with_elmo, f"{{ elmo+: {{ cache: {cache} }} }}"),
    }
    trainers = {}
    for name, (experiment, settings) in variants.items():
        params = render(experiment, settings, num_instances)
        trainers[name] = build_trainer(params, directory / name, task, num_instances)
    return trainers


def measure(task: Task, num_instances: int, num_epochs: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        trainers = build_variants(task, Path(directory), num_instances)
        seconds = time_epochs(trainers, num_epochs)
    later = {name: statistics.median(values[1:]) for name, values in seconds.items()}
    name = f"{task.name} training epoch, {num_instances:,} {task.instances}, ELMo"
    without = later["without"]
    yield Row(f"{name} computed", "s", later["computed"], without)
    # The others have warmed up before it.
    yield Row(f"{name} cached, first epoch", "s", seconds["cached"][0], without)
    yield Row(f"{name} cached, later epochs", "s", later["cached"], without, floor=FLOOR, aim=AIM)


def main() -> None:
    parser = measuring_parser(__doc__)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--instances", type=int, default=2000, help="default 2000 predicates")
    parser.add_argument("--epochs", type=int, default=3, help="at least 2; default 3")
    arguments = parser.parse_args()
    if arguments.epochs < 2:
        parser.error("--epochs must be at least 2: the first one warms up and fills the cache")
    # AllenNLP's use of torch.
    warnings.filterwarnings("ignore", category=FutureWarning)
    for name in arguments.task:
        report(measure(TASKS[name], arguments.instances, arguments.epochs), arguments.output)


if __name__ == "__main__":
    main()
