"""
Trains each experiment in experiments/ladder for the same time, and compares their perplexities.

    mkdir -p $ELMO_DATA/lm/ladder
    zcat $ELMO_DATA/lm/large/heldout.txt.gz | head -n 3000 > $ELMO_DATA/lm/ladder/heldout.txt
    python scripts/ladder.py train out/ladder --num-workers 2
    python scripts/ladder.py table out/ladder --json pretrained/small/ladder.json

Each experiment is a process of one thread; `--num-workers` is how many run at the same time.
Finished experiments are not trained again; stopped ones are continued.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List

import torch

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments" / "ladder"


def train(experiment: Path, folder: Path) -> int:
    """Trains an experiment that has not finished. Returns the exit code."""
    run = folder / experiment.stem
    if (run / "metrics.json").exists():
        return 0
    command = [sys.executable, "-m", "allennlp", "train", str(experiment), "-s", str(run)]
    if (run / "config.json").exists():
        command.append("--recover")
    print(f"{experiment.stem}: training, log in {run}.log", flush=True)
    with open(f"{run}.log", "ab") as log:
        code = subprocess.call(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    print(f"{experiment.stem}: {f'failed, see {run}.log' if code else 'finished'}", flush=True)
    return code


def result(run: Path) -> Dict[str, Any]:
    """Perplexities, number of batches and tokens, and minutes of a finished run."""
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    settings = json.loads((run / "config.json").read_text(encoding="utf-8"))["data_loader"]
    last = max(run.glob("training_state_*.th"), key=lambda path: path.stat().st_mtime)
    state = torch.load(last, map_location="cpu", weights_only=True)
    num_batches = state["elmo-recoverable"]["total_batches_completed"]
    minutes = state["learning_rate_scheduler"]["elapsed"] / 60.0
    return {
        "experiment": run.name,
        "perplexity": metrics["validation_perplexity"],
        "forward_perplexity": metrics["validation_forward_perplexity"],
        "backward_perplexity": metrics["validation_backward_perplexity"],
        "batches": num_batches,
        "tokens": num_batches * settings["tokens_per_batch"],
        "minutes": round(minutes, 2),
    }


def description(experiment: str) -> str:
    """The comment on the first line of an experiment."""
    lines = (EXPERIMENTS / f"{experiment}.jsonnet").read_text(encoding="utf-8").splitlines()
    return lines[0].removeprefix("// ").rstrip(".")


def table(results: List[Dict[str, Any]]) -> str:
    lines = [
        "| experiment | | batches | million tokens | perplexity |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in sorted(results, key=lambda row: row["perplexity"]):
        name = row["experiment"]
        lines.append(
            f"| `ladder/{name}` | {description(name)} | {row['batches']:,} | "
            f"{row['tokens'] / 1e6:.2f} | {row['perplexity']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="train the experiments that have not finished")
    training.add_argument("folder", type=Path, help="a folder per experiment is created here")
    training.add_argument("--num-workers", type=int, default=1, help="number of processes")
    training.add_argument("--only", nargs="+", metavar="EXPERIMENT", help="default: all")
    showing = commands.add_parser("table", help="print a table of finished experiments")
    showing.add_argument("folder", type=Path)
    showing.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args()
    if given.command == "train":
        experiments = sorted(EXPERIMENTS.glob("*.jsonnet"))
        names = given.only or [path.stem for path in experiments]
        unknown = set(names) - {path.stem for path in experiments}
        if unknown:
            parser.error(f"no such experiments in {EXPERIMENTS}: {', '.join(sorted(unknown))}")
        given.folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(given.num_workers) as pool:
            paths = [EXPERIMENTS / f"{name}.jsonnet" for name in names]
            codes = list(pool.map(lambda path: train(path, given.folder), paths))
        sys.exit(1 if any(codes) else 0)
    results = [result(path.parent) for path in sorted(given.folder.glob("*/metrics.json"))]
    if not results:
        raise SystemExit(f"{given.folder}: no experiment has finished.")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
