"""
Compares the speed of the working tree with a commit, on this machine: for changes that are to make
nothing slower.

    python scripts/same_speed.py                # against HEAD
    python scripts/same_speed.py 2eaf104 --turns 30 --only training

Both versions run in turn, each in a process of its own with one thread; `ratio` is the fastest turn
of the working tree over the fastest of the commit. Training steps are of the experiments' full
sizes, on the corpora and biLM that come with the project. Needs a machine that does nothing else,
for about fifteen minutes.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, List

from same_results import checked_out

TEXT = "fixtures/corpora/lm/large/heldout.txt"
Operation = Callable[[], Any]


def layers_of(dtype: str, batch_size: int) -> Operation:
    import torch

    from elmo_plugin import load_bilm

    bilm = load_bilm(dtype=dtype).eval()
    lines = Path(TEXT).read_text(encoding="utf-8").splitlines()
    ids = bilm.characters.batch_ids([line.split() for line in lines[:batch_size]])

    def run() -> None:
        with torch.no_grad():
            for _ in range(max(1, 16 // batch_size)):
                bilm(ids)

    return run


def training_of(experiment: str) -> Operation:
    """Two training steps, of the first two batches."""
    from allennlp.commands.train import TrainModel
    from allennlp.common import Params, util

    params = Params.from_file(f"experiments/{experiment}.jsonnet")
    params.params.pop("distributed", None)
    util.prepare_environment(params)
    folder = tempfile.mkdtemp()
    run = TrainModel.from_params(
        params=params, serialization_dir=folder, local_rank=0, batch_weight_key=""
    )
    trainer: Any = run.trainer
    batches = list(islice(trainer.data_loader, 2))
    trainer.model.train()

    def steps() -> None:
        for batch in batches:
            trainer.optimizer.zero_grad()
            trainer.model(**batch)["loss"].backward()
            trainer.optimizer.step()

    return steps


def prediction_of(task: str) -> Operation:
    import json

    from elmo_plugin import load_task

    predictor = load_task(task)
    lines = Path(f"fixtures/predict/{task}.jsonl").read_text(encoding="utf-8").splitlines()
    inputs = [json.loads(line) for line in lines]
    return lambda: predictor.predict_batch_json(inputs)


def loading_of(task: str) -> Operation:
    from elmo_plugin import load_task

    return lambda: load_task(task)


def command_of(arguments: str) -> Operation:
    """A call of `elmo`, which starts a process; `OUT` stands for a new folder."""
    folders = tempfile.mkdtemp()
    number = 0

    def run() -> None:
        nonlocal number
        number += 1
        words = arguments.replace("OUT", f"{folders}/{number}").split()
        call = "from elmo_plugin.commands.main import main; main()"
        subprocess.run([sys.executable, "-c", call, *words], check=True, capture_output=True)

    return run


OPERATIONS: Dict[str, Callable[[], Operation]] = {
    **{
        f"layers, {dtype}, batches of {size}": lambda dtype=dtype, size=size: layers_of(dtype, size)
        for dtype in ("float32", "bfloat16")
        for size in (1, 16, 64)
    },
    **{
        f"training, {name}": lambda name=name: training_of(name)
        for name in ("bilm_small", "ner_elmo", "sst_elmo", "snli_elmo", "srl_elmo", "coref_elmo")
    },
    **{f"prediction, {task}": lambda task=task: prediction_of(task) for task in ("ner", "squad")},
    "load_task": lambda: loading_of("ner"),
    "elmo embed": lambda: command_of(f"embed {TEXT} OUT.hdf5 --all"),
    "elmo score": lambda: command_of(f"score {TEXT} --output OUT.tsv"),
    "elmo neighbours build": lambda: command_of(f"neighbours build {TEXT} OUT"),
}


def serve_operations() -> None:
    """Runs the operations that are named on standard input; prints the seconds of each turn."""
    import torch

    import elmo_plugin.plugin

    assert Path(elmo_plugin.plugin.__file__).parents[1] == Path.cwd(), elmo_plugin.plugin.__file__
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, operation = "", None
    for line in sys.stdin:
        if line.strip() != name:
            name = line.strip()
            operation = OPERATIONS[name]()
            operation()
        start = time.perf_counter()
        operation()
        print(time.perf_counter() - start, file=answers, flush=True)


def start(tree: Path, log: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "ELMO_CACHE": ""}
    return subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        cwd=tree,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log.open("w"),
        text=True,
    )


def seconds(process: "subprocess.Popen[str]", name: str, log: Path) -> float:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit(f"same_speed: {name} failed; {log.read_text()[-2000:]}")
    return float(answer)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD", help="default: HEAD")
    parser.add_argument("--turns", type=int, default=15, help="of each version, default: 15")
    parser.add_argument("--only", default="", help="operations whose name contains this text")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve_operations()
    here = Path(__file__).resolve().parents[1]
    with checked_out(args.commit) as tree:
        logs = [tree.with_name(name) for name in ("old.log", "new.log")]
        versions = [start(*pair) for pair in zip((tree, here), logs)]
        try:
            print("| operation | before, ms | after, ms | ratio |\n| --- | ---: | ---: | ---: |")
            for name in OPERATIONS:
                if args.only in name:
                    found: List[List[float]] = [[], []]
                    for turn in range(args.turns):
                        for which in (0, 1) if turn % 2 else (1, 0):
                            found[which].append(seconds(versions[which], name, logs[which]))
                    before, after = (1000 * min(times) for times in found)
                    print(f"| {name} | {before:.2f} | {after:.2f} | {after / before:.3f} |")
        finally:
            for version in versions:
                version.kill()


if __name__ == "__main__":
    main()
