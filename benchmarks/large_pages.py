"""
Training steps of the tasks without ELMo: with large pages of memory, against the same without.

    python benchmarks/large_pages.py       # $ELMO_DATA, the first 300 instances (coreference: 50)
    python benchmarks/large_pages.py --task snli squad --turns 5 --output results.json

Needs Linux with glibc 2.35 or later and `[madvise]` in
/sys/kernel/mm/transparent_hugepage/enabled, the training files of the tasks below ELMO_DATA, and
word vectors in ELMO_GLOVE. Each measurement is a process of its own on one thread, alternately with
`GLIBC_TUNABLES=glibc.malloc.hugetlb=1` (`ours`) and without it (`peer`): the seconds of an epoch of
forward and backward passes, gradient clipping and optimizer in float32, after one that is not
counted. The median of the turns is reported.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Dict, Iterator

from common import Row, measuring_parser, report
from task_steps import training
from tasks import LONG, TASKS, build_trainer, render

VARIABLE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def seconds_of_epoch(name: str, num_instances: int) -> float:
    """In this process, after an epoch as a warm-up."""
    task = TASKS[name]
    params = render(task.without_elmo, "{}", num_instances)
    settings = params["trainer"].duplicate()
    with tempfile.TemporaryDirectory() as directory:
        trainer = build_trainer(params, Path(directory, "run"), task, num_instances)
    batches = list(trainer.data_loader)
    step = training(trainer.model, settings, batches)
    for _ in range(2):
        start = time.perf_counter()
        for number in range(len(batches)):
            step(number)
    return time.perf_counter() - start


def in_new_process(name: str, num_instances: int, variables: Dict[str, str]) -> float:
    """`seconds_of_epoch` in a process with these variables of the environment."""
    others = {key: value for key, value in os.environ.items() if key not in VARIABLE}
    finished = subprocess.run(
        [sys.executable, __file__, "--seconds", name, "--instances", str(num_instances)],
        env={**others, "OMP_NUM_THREADS": "1", **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(finished.stdout.splitlines()[-1])


def measure(name: str, num_instances: int, turns: int) -> Iterator[Row]:
    task = TASKS[name]
    number = min(num_instances, LONG) if task.long else num_instances
    run = partial(in_new_process, name, number)
    pairs = [(run(VARIABLE), run({})) for _ in range(turns)]
    ours, peer = map(statistics.median, zip(*pairs))
    what = f"large pages, one thread, {number} {task.instances}"
    yield Row(f"{task.name} training with {what}", "s", ours, peer)


def main() -> None:
    parser = measuring_parser(__doc__, turns=3)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--instances",
        type=int,
        default=300,
        help=f"training instances; default 300; for coreference at most {LONG}",
    )
    parser.add_argument(
        "--seconds", choices=TASKS, help="only print the seconds of this task in this process"
    )
    arguments = parser.parse_args()
    if arguments.seconds is not None:
        print(seconds_of_epoch(arguments.seconds, arguments.instances))
        return
    for name in arguments.task:
        report(measure(name, arguments.instances, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
