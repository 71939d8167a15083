"""
The learning curve of a biLM: held-out perplexity of each checkpoint over tokens and minutes.

    python scripts/learning_curve.py measure out/bilm_small HELDOUT curve.json
    python scripts/learning_curve.py measure out/continued HELDOUT curve.json --after curve.json
    python scripts/learning_curve.py draw curve.json curve.svg --line unigram=954.9 5-gram=141.2

Train with `keep_checkpoints: null` in the settings (`experiments/lib/bilm.libsonnet`); otherwise
only the last two checkpoints are kept. Checkpoints that curve.json has are not measured again.
`--after` adds the tokens and minutes of the run that this one continues.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

import torch
from allennlp.common import Params
from allennlp.data import DataLoader, DatasetReader
from allennlp.models import Model
from tqdm import tqdm

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.plotting import new_figure, save_picture

Point = Dict[str, Any]
NAME = re.compile(r"training_state_e(\d+)_b(\d+)\.th")


def checkpoints(run: Path) -> List[Tuple[int, int]]:
    """Epoch and batch of each checkpoint of a run, in order of training."""
    found = (NAME.fullmatch(path.name) for path in run.glob("training_state_*.th"))
    moments = sorted((int(name[1]), int(name[2])) for name in found if name)
    if not moments:
        raise SystemExit(f"{run}: expected checkpoints (training_state_e0_b500.th …), found none.")
    return moments


def measure(run: Path, text: str, output: Path, after: List[Point]) -> List[Point]:
    """Evaluates the checkpoints of a run that `output` does not have yet."""
    moments = checkpoints(run)
    config = Params.from_file(str(run / "config.json"))
    settings = config["data_loader"]
    tokens_per_batch = settings.get("tokens_per_batch") or (
        settings["batch_size"] * settings["num_steps"]
    )
    # `output` and `--after` may be the same file, which has points of this run if it was stopped.
    after = [point for point in after if point["run"] != str(run)]
    before = after[-1] if after else {"tokens": 0, "minutes": 0.0}
    points = json.loads(output.read_text(encoding="utf-8")) if output.exists() else list(after)
    done = {(point["run"], *point["checkpoint"]) for point in points}
    reader = DatasetReader.from_params(config["dataset_reader"].duplicate())
    loader = DataLoader.from_params(
        config["validation_data_loader"].duplicate(), reader=reader, data_path=text
    )
    for epoch, batch in tqdm(moments, desc="checkpoints"):
        if (str(run), epoch, batch) in done:
            continue
        name = f"state_e{epoch}_b{batch}.th"
        state = torch.load(run / f"training_{name}", map_location="cpu", weights_only=True)
        model = Model.load(config.duplicate(), str(run), str(run / f"model_{name}"))
        model.eval()
        loader.index_with(model.vocab)
        with torch.inference_mode():
            for tensors in loader:
                model(**tensors)
        num_batches = state["elmo-recoverable"]["total_batches_completed"]
        seconds = (state["learning_rate_scheduler"] or {}).get("elapsed")
        is_timed = seconds is not None and before["minutes"] is not None
        points.append(
            {
                "run": str(run),
                "checkpoint": [epoch, batch],
                "tokens": before["tokens"] + num_batches * tokens_per_batch,
                "minutes": before["minutes"] + seconds / 60.0 if is_timed else None,
                **model.get_metrics(reset=True),
            }
        )
        with atomic_write(output) as unfinished:
            unfinished.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
    return points


def draw(points: List[Point], picture: Path, lines: Dict[str, float]) -> None:
    """Perplexity over tokens, and over minutes where they are known."""
    figure = new_figure(figsize=(9, 3.6))
    from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

    axes_names = [("tokens", "million tokens read", 1e6), ("minutes", "minutes of training", 1.0)]
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (name, label, unit) in zip(axes, axes_names):
        known = [point for point in points if point[name]]
        places = [point[name] / unit for point in known]
        axis.plot(places, [point["perplexity"] for point in known], color="#0072b2", marker=".")
        for number, (line, perplexity) in enumerate(lines.items()):
            style = ("--", ":", "-.")[number % 3]
            axis.axhline(perplexity, color="#555555", linewidth=1, linestyle=style)
            axis.annotate(
                f"{line} {perplexity:g}",
                (1.0, perplexity),
                xycoords=("axes fraction", "data"),
                xytext=(-3, 2),
                textcoords="offset points",
                horizontalalignment="right",
                fontsize=8,
                color="#333333",
            )
        axis.set(xscale="log", yscale="log", xlabel=label)
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_locator(LogLocator(10.0, subs=(1, 2, 3, 5, 7), numticks=20))
            scale.set_minor_locator(NullLocator())
            scale.set_major_formatter(ScalarFormatter())
        axis.tick_params(which="both", labelsize=7)
        axis.grid(True, which="both", color="#e5e5e5", linewidth=0.5)
    axes[0].set_ylabel("perplexity per token")
    last = points[-1]
    axes[0].annotate(
        f"{last['perplexity']:.1f}",
        (last["tokens"] / 1e6, last["perplexity"]),
        xytext=(-4, -10),
        textcoords="offset points",
        horizontalalignment="right",
        fontsize=8,
        color="#0072b2",
    )
    save_picture(figure, picture)


def read_points(path: Path) -> List[Point]:
    try:
        points = json.loads(path.read_text(encoding="utf-8"))
        return [point for point in points if point["perplexity"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(
            f"{path}: expected a file that `learning_curve.py measure` wrote, found {error!r}."
        ) from None


def named_line(text: str) -> Tuple[str, float]:
    name, _, value = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"expected NAME=PERPLEXITY, found {text!r}")
    return name, float(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure", help="evaluate the checkpoints of a run")
    measuring.add_argument("run", type=Path, help="folder written by `allennlp train`")
    measuring.add_argument("text", help="held-out text")
    measuring.add_argument("output", type=Path, help="JSON file to write or extend")
    measuring.add_argument("--after", type=Path, help="JSON of the run that this one continues")
    drawing = commands.add_parser("draw", help="draw what was measured")
    drawing.add_argument("points", type=Path, help="JSON written by `measure`")
    drawing.add_argument("picture", type=Path, help="SVG or PNG to write")
    drawing.add_argument(
        "--line", type=named_line, nargs="+", default=[], metavar="NAME=PERPLEXITY"
    )
    given = parser.parse_args()
    if given.command == "measure":
        measure(
            given.run, given.text, given.output, read_points(given.after) if given.after else []
        )
    else:
        draw(read_points(given.points), given.picture, dict(given.line))


if __name__ == "__main__":
    main()
