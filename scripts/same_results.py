"""
Compares what the working tree computes with what a commit computes, on this machine: for changes
that are to change no result.

    python scripts/same_results.py              # against HEAD
    python scripts/same_results.py 2eaf104
    ELMO_DATA=/corpora python scripts/same_results.py    # predicts real corpora instead of fixtures

Compared are the layers of the biLMs bit for bit, the losses of the first 50 steps of the fixture
experiments, the predictions of the trained models for 200 instances of dev and for the lines of
`fixtures/predict` (numbers to 1e-5 in both), and the help of all commands. Takes about five
minutes for each of the two.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

EXPERIMENTS = ("bilm", *(f"{name}_elmo" for name in "squad snli srl coref ner sst".split()))
STEPS = 50
CORPORA = {
    "coref": "coref/dev.gold_conll",
    "ner": "ner/dev.conll",
    "snli": "snli/snli_1.0_dev.jsonl",
    "squad": "squad/dev-v1.1.json",
    "srl": "srl/dev.gold_conll",
}
INSTANCES = 200
TOLERANCE = 1e-5


def layers() -> Dict[str, Any]:
    import torch

    from elmo_plugin import load_bilm

    sentences = json.loads(Path("fixtures/bilm/sentences.json").read_text(encoding="utf-8"))
    digests = {}
    for folder in ("fixtures/bilm", "pretrained/small", "pretrained/medium"):
        weights = next(Path(folder).glob("weights.*"))
        for dtype in ("float32", "bfloat16"):
            bilm = load_bilm(f"{folder}/options.json", weights, dtype=dtype)
            with torch.no_grad():
                found = bilm(bilm.characters.batch_ids(sentences)).layers.float().numpy()
            digests[f"{folder} {dtype}"] = hashlib.sha256(found.tobytes()).hexdigest()
    return digests


def losses(experiment: str) -> List[float]:
    """Those of the first steps of `fixtures/experiments/EXPERIMENT.jsonnet`."""
    import torch
    from allennlp.commands.train import train_model_from_file

    class Enough(Exception):
        pass

    found: List[float] = []
    backward = torch.Tensor.backward

    def recorded(loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        found.append(loss.item())
        if len(found) == STEPS:
            raise Enough
        backward(loss, *args, **kwargs)

    torch.Tensor.backward = recorded
    try:
        overrides = {"trainer.num_epochs": STEPS, "trainer.patience": None}
        path = f"fixtures/experiments/{experiment}.jsonnet"
        with tempfile.TemporaryDirectory() as folder:
            train_model_from_file(path, folder, overrides=overrides, force=True)
    except Enough:
        pass
    finally:
        torch.Tensor.backward = backward
    return found


def predictions(task: str) -> Dict[str, Any]:
    from allennlp.common.util import sanitize

    from elmo_plugin import load_task
    from elmo_plugin.environment import setting

    predictor = load_task(task)
    corpus = f"{setting('ELMO_DATA')}/{CORPORA[task]}"
    instances = list(islice(predictor._dataset_reader.read(corpus), INSTANCES))
    lines = Path(f"fixtures/predict/{task}.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        "of the corpus": [
            predictor.predict_batch_instance(instances[first : first + 20])
            for first in range(0, len(instances), 20)
        ],
        "of lines": [sanitize(predictor.predict_json(json.loads(line))) for line in lines],
    }


def helps() -> Dict[str, str]:
    """The help of `allennlp`'s sub-commands that are ours, which are those of `elmo`, too."""
    from allennlp.commands import parse_args

    os.environ["COLUMNS"] = "100"
    sys.argv = ["allennlp"]
    return {name: text for name, text in help_of(parse_args("allennlp")[0]) if "elmo" in name}


def help_of(parser: argparse.ArgumentParser) -> Iterator[Tuple[str, str]]:
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from help_of(command)


def record(path: str) -> None:
    """Writes the results of the package in the current folder."""
    import torch

    import elmo_plugin.plugin

    assert Path(elmo_plugin.plugin.__file__).parents[1] == Path.cwd(), elmo_plugin.plugin.__file__
    torch.set_num_threads(1)
    results: Dict[str, Any] = {"help": helps(), "layers": layers()}
    for task in CORPORA:
        results[f"predictions of {task}"] = predictions(task)
    os.environ["ELMO_DATA"] = str(Path("fixtures/corpora").resolve())
    for experiment in EXPERIMENTS:
        results[f"losses of {experiment}"] = losses(experiment)
    Path(path).write_text(json.dumps(results))


def differences(old: Any, new: Any, where: str) -> Iterator[Tuple[str, float]]:
    """The places where results differ, and by how much relatively (infinity if not numbers)."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in old:
            yield from differences(old[key], new[key], f"{where} / {key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new)):
            yield from differences(*pair, f"{where} / {number}")
    elif isinstance(old, float) and isinstance(new, float):
        if old != new and not (math.isnan(old) and math.isnan(new)):
            yield where, abs(old - new) / max(abs(old), abs(new), 1e-3)
    elif old != new:
        yield where, math.inf


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A work tree of a commit, in a temporary folder of its own."""
    git = ["git", "-C", str(Path(__file__).parent), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        subprocess.run([*git, "add", "--quiet", "--detach", tree, commit], check=True)
        try:
            # Its entry points, which may differ from those installed.
            subprocess.run([sys.executable, "setup.py", "-q", "egg_info"], cwd=tree, check=True)
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)


def run(tree: Path, path: Path) -> Dict[str, Any]:
    print(f"same_results: running {tree}", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "ELMO_CACHE": ""}
    command = [sys.executable, __file__, "--record", str(path)]
    with open(f"{path}.log", "w") as log:
        done = subprocess.run(command, cwd=tree, env=environment, stdout=log, stderr=log)
    if done.returncode:
        sys.exit(f"same_results: {tree} failed; {Path(f'{path}.log').read_text()[-2000:]}")
    return json.loads(path.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD", help="default: HEAD")
    parser.add_argument("--record", metavar="FILE", help="only write the results of this folder")
    args = parser.parse_args()
    if args.record:
        return record(args.record)
    here = Path(__file__).resolve().parents[1]
    with checked_out(args.commit) as tree:
        old = run(tree, tree.with_name("old.json"))
        new = run(here, tree.with_name("new.json"))
    failed = False
    for part in sorted({*old, *new}):
        found = list(differences(old.get(part), new.get(part), part))
        largest = max((size for _, size in found), default=0.0)
        same = largest <= TOLERANCE
        failed = failed or not same
        print(
            f"{'same' if same else 'DIFFERENT':10}{part}, largest relative difference {largest:.2g}"
        )
        for where, size in found[:5] if not same else ():
            print(f"          {where}: {size:.2g}")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
