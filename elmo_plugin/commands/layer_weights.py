"""
Show how trained models mix the layers of their biLM (equation 1 and figure 2 of the paper): the
softmax-normalised weight of each layer, and gamma, for each place where ELMo is added.

ARCHIVE is the model.tar.gz or the folder of a training run. Nothing in it is executed. Layer 0 is
the token layer. The weights are those of the best epoch.

example:
    %(prog)s out/srl_elmo/model.tar.gz out/snli_elmo/model.tar.gz --plot weights.svg weights.png
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import List, Optional

from elmo_plugin.analysis.layer_weights import LayerWeights, layer_weights
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.commands.tables import markdown_table
from elmo_plugin.util.atomic_write import check_output, write_json
from elmo_plugin.util.plotting import label_of, new_figure, save_picture


@dataclass(kw_only=True)
class Options:
    archive: List[str] = positional("ARCHIVE", "model.tar.gz or folder")
    json: Optional[Path] = option("also write the numbers to this file", metavar="FILE")
    plot: Optional[List[Path]] = option("draw a heat map: SVG, PNG or PDF", metavar="FILE")


def run(args: Options) -> str:
    pictures = args.plot or []
    for output in [*pictures, *([args.json] if args.json else [])]:
        check_output(output, force=True)
    mixes = [mix for archive in args.archive for mix in layer_weights(archive)]
    layers = [f"layer {number}" for number in range(max(len(mix.weights) for mix in mixes))]
    for picture in pictures:
        _draw(mixes, layers, picture)
    if args.json is not None:
        write_json(args.json, [asdict(mix) for mix in mixes])
    rows = []
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        weights += [""] * (len(layers) - len(weights))
        rows.append([mix.archive, mix.model, mix.at, *weights, f"{mix.gamma:.3f}"])
    return markdown_table(["archive", "model", "at", *layers, "gamma"], rows, num_left=3)


def _draw(mixes: List[LayerWeights], layers: List[str], picture: Path) -> None:
    """A heat map like figure 2 of the paper: a row per mix, sorted by the place of ELMo."""
    mixes = sorted(mixes, key=lambda mix: mix.at)
    figure = new_figure(figsize=(3.0 + len(layers), 1.2 + 0.4 * len(mixes)))
    axes = figure.subplots()
    rows = [mix.weights + [0.0] * (len(layers) - len(mix.weights)) for mix in mixes]
    # `imshow` would draw a bitmap.
    image = axes.pcolormesh(rows, cmap="cividis", vmin=0.0, vmax=1.0)
    axes.invert_yaxis()
    style = {"ha": "center", "va": "center"}
    for row, weights in enumerate(rows):
        for column, weight in enumerate(weights):
            colour = "black" if weight > 0.5 else "white"
            axes.text(column + 0.5, row + 0.5, f"{weight:.2f}", color=colour, **style)
    labels = [label_of(f"{_name(mix, mixes)}, {mix.at}") for mix in mixes]
    axes.set_yticks([n + 0.5 for n in range(len(rows))], labels, fontsize=8)
    axes.set_xticks([n + 0.5 for n in range(len(layers))], layers, fontsize=8)
    figure.colorbar(image, label="weight")
    save_picture(figure, picture)


def _name(mix: LayerWeights, mixes: List[LayerWeights]) -> str:
    """Names the model, and its folder if several archives have it."""
    name = mix.model.removeprefix("elmo-") or mix.archive
    if len({other.archive for other in mixes if other.model == mix.model}) > 1:
        name += f" ({mix.archive.removesuffix('/model.tar.gz')})"
    return name
