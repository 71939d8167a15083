"""The weights of layers as a table, and as a heat map as in figure 2 of the paper."""

from pathlib import Path
from typing import Any, List, Sequence

from elmo_plugin.analysis.layer_weights import LayerWeights
from elmo_plugin.util.plotting import label_of


def weight_table(mixes: Sequence[LayerWeights]) -> List[List[str]]:
    """The head, `layer 0` to `gamma`, and a row for each mix; layers that it lacks are empty."""
    num_layers = max(len(mix.weights) for mix in mixes)
    rows = [[f"layer {number}" for number in range(num_layers)] + ["gamma"]]
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        rows.append([*weights, *[""] * (num_layers - len(weights)), f"{mix.gamma:.3f}"])
    return rows


def model_label(mix: LayerWeights, mixes: Sequence[LayerWeights]) -> str:
    """
    The model, and if several archives are of the same model, the folder of the training, or where
    folders have the same name, the archive.
    """
    name = mix.model.removeprefix("elmo-") or mix.archive
    archives = {other.archive for other in mixes if other.model == mix.model}
    if len(archives) > 1:
        folder = _folder(mix.archive)
        is_unique = folder and [_folder(archive) for archive in archives].count(folder) == 1
        name += f" ({folder if is_unique else mix.archive})"
    return name


def _folder(archive: str) -> str:
    path = Path(archive)
    return path.parent.name if path.name == "model.tar.gz" else path.name


def draw_weights(
    axes: Any, mixes: Sequence[LayerWeights], labels: Sequence[str], num_layers: int
) -> Any:
    """Draws a row for each mix, with these labels; returns what a colour bar is made of."""
    rows = [mix.weights + [0.0] * (num_layers - len(mix.weights)) for mix in mixes]
    # Not `imshow`, which draws a bitmap.
    image = axes.pcolormesh(rows, cmap="cividis", vmin=0.0, vmax=1.0)
    axes.invert_yaxis()
    for row, weights in enumerate(rows):
        for column, weight in enumerate(weights):
            centre = (column + 0.5, row + 0.5)
            colour = "black" if weight > 0.5 else "white"
            axes.text(*centre, f"{weight:.2f}", ha="center", va="center", color=colour)
    layers = range(num_layers)
    axes.set_yticks([n + 0.5 for n in range(len(rows))], map(label_of, labels), fontsize=8)
    axes.set_xticks([n + 0.5 for n in layers], [f"layer {n}" for n in layers], fontsize=8)
    return image
