"""
Mean and sample standard deviation of each metric over runs with different seeds.

    python scripts/mean_of_runs.py out/ner_1/metrics.json out/ner_2/metrics.json
    python scripts/mean_of_runs.py out/ner_*/test.json --metric f1-measure-overall

The files are those of `allennlp train` (metrics.json) and `allennlp evaluate --output-file`. Only
metrics that all files have are shown; accuracy, precision, recall and F1 as percentages.
"""

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Dict, List

FRACTIONS = re.compile("accuracy|precision|recall|f1")


def read_metrics(path: Path) -> Dict[str, float]:
    """The numbers of a file, by name."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"a {type(found).__name__}")
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: expected a file of metrics in JSON, found {error}.") from None
    return {name: value for name, value in found.items() if type(value) in (int, float)}


def summary(runs: List[Dict[str, float]]) -> Dict[str, str]:
    """`mean ± deviation` of each metric that all runs have; of a single run, its values."""
    lines = {}
    for name in runs[0]:
        if not all(name in run for run in runs):
            continue
        values = [run[name] for run in runs]
        scale = 100.0 if FRACTIONS.search(name) else 1.0
        text = f"{scale * statistics.mean(values):.2f}"
        if len(runs) > 1:
            text += f" ± {scale * statistics.stdev(values):.2f}"
        lines[name] = text
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="one file of metrics per run")
    parser.add_argument("--metric", help="show only this one")
    arguments = parser.parse_args()
    lines = summary([read_metrics(path) for path in arguments.files])
    if arguments.metric is not None:
        if arguments.metric not in lines:
            parser.error(f"not all files have {arguments.metric!r}; they share {sorted(lines)}")
        lines = {arguments.metric: lines[arguments.metric]}
    for name, text in lines.items():
        print(f"{name:<40} {text}   ({len(arguments.files)} runs)")


if __name__ == "__main__":
    main()
