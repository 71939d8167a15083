"""
Prints what the demonstration measured and predicted: `show_demo.py OUTPUT_DIR`.
"""

import json
import sys
from pathlib import Path


def show_metrics(path: Path) -> None:
    """Precision, recall and F1 over all roles."""
    metrics = json.loads(path.read_text(encoding="utf-8"))
    print("\nOn the test corpus:")
    for name, value in metrics.items():
        if name.endswith("-overall"):
            print(f"  {name:<20} {value:.3f}")


def show_predictions(path: Path) -> None:
    """Each predicate with the spans that fill its roles."""
    print("\nPredicted (with errors, after a few seconds of training on a tiny corpus):")
    for line in path.read_text(encoding="utf-8").splitlines():
        prediction = json.loads(line)
        print(f"  {' '.join(prediction['tokens'])}")
        for frame in prediction["frames"]:
            print(f"    {frame['description']}")


if __name__ == "__main__":
    output = Path(sys.argv[1])
    show_metrics(output / "metrics.json")
    show_predictions(output / "predictions.jsonl")
