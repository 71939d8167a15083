"""
Draws the rooms of the package and their imports, as `docs/architecture.md` shows them:

    python scripts/draw_architecture.py docs/pictures/architecture.svg

An arrow means that a module of the upper room imports one of the lower room. Imports that follow
from others (`commands` imports `bilm`, because `elmo` does) have no arrow, nor has `util`, which
all rooms import.
"""

import argparse
import ast
from pathlib import Path
from typing import Dict, List, Set

from matplotlib.patches import FancyBboxPatch, Rectangle

from elmo_plugin.util.plotting import new_figure, save_picture

PACKAGE = Path(__file__).parent.parent / "elmo_plugin"
#: Storeys from top to bottom: the rows of their rooms, with the place of each from left to right.
STOREYS: Dict[str, List[Dict[str, float]]] = {
    "Lab: what people run on top": [
        {"commands": -3.2},
        {"serve": -3.2, "integrations": 0},
        {"analysis": -3.2},
    ],
    "Plugin: AllenNLP": [{"tasks": 1.8}, {"training": 2.7, "archives": -3.2}],
    "Core: torch, NumPy, h5py, safetensors, filelock": [
        {"elmo": 0},
        {"bilm": 0},
        {"modules": -1.6, "corpora": 1.6},
        {"util": 0},
    ],
}
CONTENTS = {
    "commands": "elmo, allennlp elmo-…",
    "serve": "predictions over HTTP",
    "integrations": "spaCy, flair, …",
    "analysis": "probes, contexts, studies",
    "tasks": "a room for each task",
    "training": "what the trainer lacks",
    "archives": "untrusted archives",
    "elmo": "scalar mix, stores of vectors",
    "bilm": "the model, files, pre-training",
    "modules": "recurrent and other layers",
    "corpora": "formats of files",
    "util": "atomic writing, errors, files",
}
WIDTH, HEIGHT = 2.5, 0.7


def imported_rooms(room: str) -> Set[str]:
    """The other rooms that modules of `room` import."""
    found = set()
    for path in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                package, _, module = node.module.partition(".")
                if package == "elmo_plugin":
                    found.add(module.split(".")[0])
    return (found & set(CONTENTS)) - {room, "util"}


def direct(imports: Dict[str, Set[str]]) -> Dict[str, Set[str]]:
    """`imports` without those that follow from others."""

    def below(room: str) -> Set[str]:
        return imports[room].union(*(below(other) for other in imports[room]))

    return {
        room: {
            other
            for other in others
            if not any(other in below(between) for between in others - {other})
        }
        for room, others in imports.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("picture", type=Path, help="an SVG, PNG or PDF file")
    picture = parser.parse_args().picture
    figure = new_figure(figsize=(9, 9))
    axes = figure.add_subplot()
    places = {}
    top = 0.0
    for storey, rows in STOREYS.items():
        height = 1.2 * len(rows) + 0.4
        axes.add_patch(Rectangle((-4.9, top - height), 11.7, height - 0.15, color="#f0f0f0"))
        axes.text(6.6, top - 0.3, storey, ha="right", va="top", weight="bold", color="#444444")
        for number, row in enumerate(rows):
            places.update({room: (x, top - 0.9 - 1.2 * number) for room, x in row.items()})
        top -= height
    for room, others in direct({room: imported_rooms(room) for room in CONTENTS}).items():
        x, y = places[room]
        for other in others:
            to_x, to_y = places[other]
            start, end = (x, y - HEIGHT / 2), (to_x, to_y + HEIGHT / 2)
            axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#0072b2"})
    for room, (x, y) in places.items():
        axes.add_patch(
            FancyBboxPatch(
                (x - WIDTH / 2 + 0.1, y - HEIGHT / 2 + 0.1),
                WIDTH - 0.2,
                HEIGHT - 0.2,
                boxstyle="round,pad=0.1",
                fc="white",
                ec="#0072b2",
            )
        )
        axes.text(x, y + 0.12, room, ha="center", va="center", fontsize=11, weight="bold")
        axes.text(x, y - 0.17, CONTENTS[room], ha="center", va="center", fontsize=7.5)
    axes.set_xlim(-5, 6.9)
    axes.set_ylim(top, 0)
    axes.axis("off")
    save_picture(figure, picture)


if __name__ == "__main__":
    main()
