"""
Show how trained models mix the layers of their biLM (equation 1 and figure 2 of the paper): the
softmax-normalised weight of each layer, and gamma, for each place where ELMo is added.

ARCHIVE is the model.tar.gz or the folder of a training run. Nothing in it is executed. Layer 0 is
the token layer. The weights are those of the best epoch; those of each epoch are in the metrics
of a training run (training_elmo_input_layer_0, …).

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
from elmo_plugin.commands.arguments import option, positional, refuse
from elmo_plugin.commands.tables import markdown_table
from elmo_plugin.util.atomic_write import check_output, write_json
from elmo_plugin.util.plotting import new_figure, save_picture

_PICTURES = (".svg", ".png", ".pdf")


@dataclass(kw_only=True)
class Options:
    archive: List[str] = positional("ARCHIVE", "model.tar.gz or folder")
    json: Optional[Path] = option("also write the numbers to this file", metavar="FILE")
    plot: Optional[List[Path]] = option("draw a heat map: SVG, PNG or PDF", metavar="FILE")


def run(args: Options) -> str:
    pictures = args.plot or []
    expected = f"expected a name that ends with {', '.join(_PICTURES)}."
    refuse({f"--plot {name}: {expected}": name.suffix not in _PICTURES for name in pictures})
    outputs = [*pictures, args.json] if args.json else pictures
    for output in outputs:
        check_output(output, force=True)
    mixes = [mix for archive in args.archive for mix in layer_weights(archive)]
    if args.json is not None:
        write_json(args.json, [asdict(mix) for mix in mixes])
    for picture in pictures:
        _draw(mixes, picture)
    head, *weights = weight_table(mixes)
    rows = [[mix.archive, mix.model, mix.at, *row] for mix, row in zip(mixes, weights)]
    return markdown_table(["archive", "model", "at", *head], rows, num_left=3)


def _draw(mixes: List[LayerWeights], picture: Path) -> None:
    """A heat map like figure 2 of the paper: a row per mix, a panel per place of ELMo."""
    positions = list(dict.fromkeys(mix.at for mix in mixes))
    heights = [sum(mix.at == at for mix in mixes) for at in positions]
    num_layers = max(len(mix.weights) for mix in mixes)
    height = 1.2 + 0.4 * len(mixes) + 0.4 * len(positions)
    figure = new_figure(figsize=(3.0 + num_layers, height))
    axes = figure.subplots(len(positions), squeeze=False, height_ratios=heights, sharex=True)
    for axis, at in zip(axes.flat, positions):
        found = [mix for mix in mixes if mix.at == at]
        labels = [model_label(mix, mixes) for mix in found]
        image = draw_weights(axis, found, labels, num_layers)
        axis.set_title(f"at the {at}" if at in ("input", "output") else at, fontsize=10)
    figure.colorbar(image, ax=axes, label="weight")
    save_picture(figure, picture)
