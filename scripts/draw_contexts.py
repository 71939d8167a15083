"""
Draws how alike a biLM finds a word in several sentences, as the first page of the guide shows it:

    python scripts/draw_contexts.py docs/pictures/play.svg
"""

import argparse
from pathlib import Path

import torch

from elmo_plugin import embed_sentences, load_bilm
from elmo_plugin.util.plotting import new_figure, save_picture

WORD = "play"
SENTENCES = [
    "The play began at eight .",
    "The actors rehearsed a new play .",
    "They play chess .",
    "Children play in the park .",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n")[0])
    parser.add_argument("picture", type=Path, help="an SVG, PNG or PDF file")
    picture = parser.parse_args().picture
    words = [sentence.split() for sentence in SENTENCES]
    layers = embed_sentences(load_bilm("shipped-small"), words)
    # Shape: (num_sentences, dim)
    vectors = torch.stack([last[-1][each.index(WORD)] for last, each in zip(layers, words)])
    cosines = torch.cosine_similarity(vectors[:, None], vectors[None], dim=-1).numpy()

    figure = new_figure(figsize=(5.4, 2.3))
    axes = figure.add_subplot()
    axes.imshow(cosines, cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    for row, line in enumerate(cosines):
        for column, cosine in enumerate(line):
            axes.text(column, row, f"{cosine:.2f}", ha="center", va="center", fontsize=11)
    numbers = range(len(SENTENCES))
    labels = [text.replace(WORD, rf"$\bf{{{WORD}}}$") for text in SENTENCES]
    labels = [f"{number + 1}  {label.replace(' .', '.')}" for number, label in enumerate(labels)]
    axes.set_yticks(numbers, labels, fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=0, top=True, labeltop=True, labelbottom=False)
    axes.set_xticks(numbers, [number + 1 for number in numbers], fontsize=11)
    axes.spines[:].set_visible(False)
    save_picture(figure, picture)


if __name__ == "__main__":
    main()
