"""
Prints what the demonstration measured and predicted: `show_demo.py results OUTPUT_DIR`; or, while
it trains, the metrics of each epoch: `allennlp train ... | show_demo.py epochs OUTPUT_DIR`.
"""

import json
import sys
from pathlib import Path


def show_epochs(model: Path) -> None:
    """Loss and F1 of each epoch, once training says on standard input that the next one begins."""
    epochs = 0
    for line in sys.stdin:
        if line.startswith("Epoch "):
            show_epoch(model, epochs)
            epochs += 1
    show_epoch(model, epochs)


def show_epoch(model: Path, number: int) -> None:
    """Epoch `number`, from 1. Shows nothing if it was not finished."""
    path = model / f"metrics_epoch_{number - 1}.json"
    if path.exists():
        metrics = json.loads(path.read_text(encoding="utf-8"))
        loss, f1 = metrics["training_loss"], metrics["validation_f1-measure-overall"]
        print(f"  epoch {number:2}: loss {loss:7.3f}, F1 on dev {f1:.3f}", flush=True)


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
    output = Path(sys.argv[2])
    if sys.argv[1] == "epochs":
        show_epochs(output / "model")
    else:
        show_metrics(output / "metrics.json")
        show_predictions(output / "predictions.jsonl")
