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

from elmo_plugin.analysis.layer_weights import (
    LayerWeights,
    draw_weights,
    layer_weights,
    model_label,
    weight_table,
)
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.commands.tables import markdown_table
from elmo_plugin.util.atomic_write import check_output, write_json
from elmo_plugin.util.plotting import new_figure, save_picture


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
    for picture in pictures:
        _draw(mixes, picture)
    if args.json is not None:
        write_json(args.json, [asdict(mix) for mix in mixes])
    head, *weights = weight_table(mixes)
    rows = [[mix.archive, mix.model, mix.at, *row] for mix, row in zip(mixes, weights)]
    return markdown_table(["archive", "model", "at", *head], rows, num_left=3)


def _draw(mixes: List[LayerWeights], picture: Path) -> None:
    """A heat map like figure 2 of the paper: a row per mix, sorted by the place of ELMo."""
    shown = sorted(mixes, key=lambda mix: mix.at)
    labels = [f"{model_label(mix, mixes)}, {mix.at}" for mix in shown]
    num_layers = max(len(mix.weights) for mix in mixes)
    figure = new_figure(figsize=(3.0 + num_layers, 1.2 + 0.4 * len(mixes)))
    image = draw_weights(figure.subplots(), shown, labels, num_layers)
    figure.colorbar(image, label="weight")
    save_picture(figure, picture)
