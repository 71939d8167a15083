import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import List

from elmo_plugin.analysis.layer_weights import LayerWeights, layer_weights
from elmo_plugin.commands.markdown import markdown_table
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.pictures import import_pyplot

DESCRIPTION = """\
Show how trained models mix the layers of their biLM (equation 1 and figure 2 of the paper): the
softmax-normalised weight of each layer, and gamma, for each place where ELMo is added.

ARCHIVE is the model.tar.gz or the folder of a training run. Nothing in it is executed. Layer 0 is
the token layer. The weights of each epoch are in the metrics of a training (elmo_input_layer_0, …)
and in its TensorBoard.
"""

EPILOG = """\
example:
    %(prog)s out/srl_elmo/model.tar.gz out/snli_elmo/model.tar.gz --plot weights.svg weights.png
"""

STOPPED = "stopped."

_PICTURES = (".svg", ".png", ".pdf")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", nargs="+", help="model.tar.gz or folder")
    parser.add_argument("--json", metavar="FILE", help="also write the numbers to this file")
    parser.add_argument(
        "--plot", metavar="FILE", nargs="+", default=[], help="draw a heat map: SVG, PNG or PDF"
    )


def run(args: Namespace) -> str:
    for picture in args.plot:
        if Path(picture).suffix not in _PICTURES:
            raise ConfigurationError(
                f"--plot {picture}: expected a name that ends with {', '.join(_PICTURES)}."
            )
    for output in filter(None, [args.json, *args.plot]):
        Path(output).parent.mkdir(parents=True, exist_ok=True)
    mixes = [mix for archive in args.archive for mix in layer_weights(archive)]
    if args.json is not None:
        with atomic_write(args.json) as unfinished:
            content = json.dumps([asdict(mix) for mix in mixes], indent=1)
            unfinished.write_text(f"{content}\n", encoding="utf-8")
    for picture in args.plot:
        draw(mixes, Path(picture))
    return _table(mixes)


def _table(mixes: List[LayerWeights]) -> str:
    num_layers = max(len(mix.weights) for mix in mixes)
    head = ["archive", "model", "at", *(f"layer {number}" for number in range(num_layers)), "gamma"]
    rows = []
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        weights += [""] * (num_layers - len(weights))
        rows.append([mix.archive, mix.model, mix.place, *weights, f"{mix.gamma:.3f}"])
    return markdown_table(head, rows, num_left=3)


def draw(mixes: List[LayerWeights], picture: Path) -> None:
    """A heat map with a row for each mix, and a panel for each place, as figure 2 of the paper."""
    pyplot = import_pyplot()
    places = list(dict.fromkeys(mix.place for mix in mixes))
    heights = [sum(mix.place == place for mix in mixes) for place in places]
    num_layers = max(len(mix.weights) for mix in mixes)
    figure, axes = pyplot.subplots(
        len(places),
        figsize=(3.0 + num_layers, 1.2 + 0.4 * len(mixes) + 0.4 * len(places)),
        squeeze=False,
        constrained_layout=True,
        height_ratios=heights,
        sharex=True,
    )
    for axis, place in zip(axes.flat, places):
        of_place = [mix for mix in mixes if mix.place == place]
        weights = [mix.weights + [0.0] * (num_layers - len(mix.weights)) for mix in of_place]
        image = axis.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
        for row, values in enumerate(weights):
            for column, value in enumerate(values):
                color = "white" if value > 0.6 else "black"
                axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=color)
        axis.set_yticks(range(len(of_place)), [_label(mix, mixes) for mix in of_place])
        axis.set_xticks(range(num_layers), [f"layer {number}" for number in range(num_layers)])
        axis.set_title(f"at the {place}" if place in ("input", "output") else place, fontsize=10)
    figure.colorbar(image, ax=axes, label="weight")
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)
    pyplot.close(figure)


def _label(mix: LayerWeights, mixes: List[LayerWeights]) -> str:
    """The model, and the run if several are of the same model."""
    name = mix.model.removeprefix("elmo-") or mix.archive
    if len({other.archive for other in mixes if other.model == mix.model}) > 1:
        path = Path(mix.archive)
        name += f" ({path.parent.name if path.name == 'model.tar.gz' else path.name})"
    return name
