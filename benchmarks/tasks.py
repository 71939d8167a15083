"""
Two measurements of tasks: the cost of ELMo in a training epoch, and training and prediction without
ELMo against the models of allennlp-models 2.10.1.

    python benchmarks/tasks.py                       # $ELMO_DATA, the first 2,000 instances of each
    python benchmarks/tasks.py --task srl --instances 500 --epochs 3 --output results.json
    python benchmarks/tasks.py --task ner sst snli --of steps --peers /folder/of/allennlp-models

Needs the training and dev files of the tasks below ELMO_DATA, and word vectors in ELMO_GLOVE. The
experiments are those of the project with fewer instances and without validation.

`--of epochs`: seconds of an epoch with ELMo computed in each epoch, and with ELMo from a cache on
disk. Epochs of the variants alternate; `peer` is the same task without ELMo. The median of the
epochs after the first one is reported, and for the cache also the first epoch, which fills it.

`--of steps`: instances per second of the experiment without ELMo and of the model that
allennlp-models has for the task, with equal sizes, on the same tensors, measured alternately;
task_peers.py lists the differences. Training is forward and backward pass, gradient clipping and
optimizer on batches of the experiment, ours in mixed precision, too; prediction runs over dev as
`allennlp predict` does, from tensors to readable answers, ours with `dtype: 'bfloat16'`, too. For
coreference, whose instances are whole documents, 50 instances are used, one per batch. For
coreference and question answering, rows also give the memory of a training step. Skipped if
allennlp-models is not installed; to install it:

    pip install --no-deps --target FOLDER allennlp-models==2.10.1 word2number
"""

import ctypes
import gc
import json
import os
import statistics
import tempfile
import time
import warnings
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional

from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import lazy_groups_of, prepare_environment
from allennlp.data import DatasetReader
from allennlp.training import GradientDescentTrainer
from common import Row, by_turns, measuring_parser, median_rate, report
from memory import resident
from task_peers import CURE, PEERS, find_peers
from task_steps import prediction, tensors, training, unlabelled

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"
FLOOR, AIM = "<= 1.25x", "<= 1.1x"
STEPS_FLOOR, STEPS_AIM = ">= 1x", ">= 2x"
MEMORY_FLOOR = "<= 1x"
PREDICTED = 64
LONG = 50


@dataclass(frozen=True)
class Task:
    """
    The experiments of a task, the name of its instances, and the model of allennlp-models; `long`
    if instances are so long that each is a batch, `large` if memory is measured.
    """

    name: str
    without_elmo: Path
    with_elmo: Path
    instances: str
    peer: Optional[str] = None
    long: bool = False
    large: bool = False


def published(
    name: str,
    instances: str,
    peer: Optional[str] = None,
    long: bool = False,
    large: bool = False,
) -> Task:
    paths = EXPERIMENTS / f"{name}.jsonnet", EXPERIMENTS / f"{name}_elmo.jsonnet"
    return Task(name.upper(), *paths, instances, peer, long, large)


TASKS = {
    "srl": published("srl", "predicates"),
    "ner": published("ner", "sentences", "crf_tagger"),
    "sst": published("sst", "phrases", "bcn"),
    "snli": published("snli", "pairs", "esim"),
    "squad": published("squad", "questions", "bidaf", large=True),
    "coref": published("coref", "documents", "coref", long=True, large=True),
}


def render(experiment: Path, settings: str, num_instances: int) -> Params:
    """An experiment with other settings and without validation."""
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
    """As in `allennlp train`, up to the first epoch."""
    place = params["train_data_path"]
    prepare_environment(params)
    directory.mkdir()
    trainer = TrainModel.from_params(
        params=params, serialization_dir=str(directory), local_rank=0
    ).trainer
    # Loads the remaining instances before the first epoch.
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
    """Seconds of each trainer's epochs; epochs of the trainers alternate."""
    seconds: Dict[str, List[float]] = {name: [] for name in trainers}
    # `trainer.train` cannot pause between epochs, so its calls are repeated here.
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
    """Trainers without ELMo, with ELMo, and with ELMo cached below `directory`."""
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
    # It follows the first epochs of the other variants, which serve as its warm-up.
    yield Row(f"{name} cached, first epoch", "s", seconds["cached"][0], without)
    yield Row(f"{name} cached, later epochs", "s", later["cached"], without, floor=FLOOR, aim=AIM)


def added_memory(run: Callable[[int], None]) -> float:
    """Peak memory of the first turn of a run, without what was used before, in MB."""
    gc.collect()
    # Returns free memory to the system; if a step reused it, the peak would not rise.
    ctypes.CDLL(None).malloc_trim(0)
    # Resets the peak.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    run(0)
    return resident("VmHWM") - before


def measure_steps(task: Task, num_instances: int, turns: int) -> Iterator[Row]:
    experiment = Params.from_file(task.without_elmo)
    params = render(task.without_elmo, "{}", num_instances)
    with tempfile.TemporaryDirectory() as directory:
        trainer = build_trainer(params, Path(directory, "ours"), task, num_instances)
    ours, peer = trainer.model, PEERS[task.peer](trainer.model)

    def rows(
        what: str, runs: Dict[str, Callable[[int], None]], amounts: List[int]
    ) -> Iterator[Row]:
        seconds = by_turns(runs, turns)
        # The first turn is a warm-up and not counted.
        rates = {name: median_rate(values, amounts[1:]) for name, values in seconds.items()}
        name, unit, peer = f"{task.name} {what}", f"{task.instances}/s", rates["peer"]
        against = f", against {task.peer}"
        yield Row(name + against, unit, rates["ours"], peer, floor=STEPS_FLOOR, aim=STEPS_AIM)
        for half in rates.keys() - {"ours", "peer"}:
            yield Row(f"{name}, {half}{against}", unit, rates[half], peer)

    # Starts again from the first batch if there are fewer batches than turns.
    batches = list(islice(cycle(list(trainer.data_loader)), turns + 1))
    sizes = [len(batch["metadata"]) for batch in batches]
    steps = {
        "ours": training(ours, experiment["trainer"], batches),
        "peer": training(peer.model, experiment["trainer"], list(map(peer.batch, batches))),
        "mixed precision": training(ours, experiment["trainer"], batches, mixed_precision=True),
    }
    if task.large:
        memory = [added_memory(steps[name]) for name in ("ours", "peer")]
        name = f"{task.name} training, memory of a step, against {task.peer}"
        yield Row(name, "MB", *memory, floor=MEMORY_FLOOR)
    yield from rows(f"training, batch {max(sizes)}", steps, sizes)
    reader = DatasetReader.from_params(experiment["validation_dataset_reader"])
    path = experiment["validation_data_path"]
    instances = unlabelled(reader, path, PREDICTED * (turns + 1))
    parts = [instances[first :: turns + 1] for first in range(turns + 1)]
    for size in (1,) if task.long else (1, PREDICTED):
        given = [
            [tensors(group, ours.vocab) for group in lazy_groups_of(part, size)] for part in parts
        ]
        yield from rows(
            f"prediction, batch {size}",
            {
                "ours": prediction(ours, given),
                "bfloat16": prediction(ours, given, bfloat16=True),
                "peer": prediction(peer.model, [list(map(peer.batch, part)) for part in given]),
            },
            [len(part) for part in parts],
        )


def main() -> None:
    parser = measuring_parser(__doc__, turns=10)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--of",
        nargs="+",
        choices=("epochs", "steps"),
        help="default: steps of the tasks that have a peer, epochs of the others",
    )
    parser.add_argument(
        "--instances",
        type=int,
        default=2000,
        help=f"training instances; default 2000; for coreference at most {LONG}",
    )
    parser.add_argument("--epochs", type=int, default=3, help="at least 2; default 3")
    parser.add_argument(
        "--peers",
        type=Path,
        default=os.environ.get("ELMO_PEERS"),
        help="folder of allennlp-models; default $ELMO_PEERS",
    )
    arguments = parser.parse_args()
    if arguments.epochs < 2:
        parser.error("--epochs must be at least 2: the first one warms up and fills the cache")
    # Warnings about AllenNLP's use of torch.
    warnings.filterwarnings("ignore", category=FutureWarning)
    for task in (TASKS[name] for name in arguments.task):
        of = arguments.of or ["steps" if task.peer else "epochs"]
        number = min(arguments.instances, LONG) if task.long else arguments.instances
        if "epochs" in of:
            report(measure(task, number, arguments.epochs), arguments.output)
        if "steps" in of and task.peer:
            if find_peers(arguments.peers):
                rows = measure_steps(task, number, arguments.turns)
                report(rows, arguments.output)
            else:
                print(f"{task.name}: no rows against `{task.peer}`. To have them: {CURE}.")


if __name__ == "__main__":
    main()
