import json
import math
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Type

from elmo_plugin.analysis.layer_weight_figure import draw_weights, model_label, weight_table
from elmo_plugin.analysis.layer_weights import LayerWeights
from elmo_plugin.analysis.report.page import Figure, Section
from elmo_plugin.analysis.studies.plots import panels
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.tables import Table, score_tables
from elmo_plugin.util.bootstrap import Difference
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.plotting import COLOURS, MARKERS, label_of

# Table 6 of Peters et al. (2018): accuracy on the Penn Treebank.
_PAPER_TAGS = {"CoVe": ("93.3", "92.8"), "biLM": ("97.3", "96.8")}
# Table 5: F1 on all five test sets.
_PAPER_SENSES = {"first sense": ("65.9",), "CoVe": ("59.4", "64.7"), "biLM": ("67.4", "69.0")}
_HOLLOW = "Hollow marks are the paper's scores"
_PAIRED = "The interval of a difference is paired: it can exclude zero although the others overlap."


def read_section(path: Path) -> Optional[Section]:
    """
    The section of a JSON file: a study's `results.json`, what `elmo probe`, `elmo layer-weights`
    and `scripts/learning_curve.py` write. `None` for any other file.

    # Raises

    `ConfigurationError`
        If a file of one of these kinds lacks a field.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    first = content[0] if isinstance(content, list) and content else content
    for names, container, make in _KINDS:
        if isinstance(content, container) and isinstance(first, dict) and names <= first.keys():
            try:
                return make(content, path)
            except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
                raise ConfigurationError(
                    f"{path}: expected results as this version writes them, found {error!r}. Make "
                    "them again, or move the file away."
                ) from error
    return None


def _study(content: Dict[str, Any], path: Path) -> Section:
    results = Results(path)
    figures = [Figure(panel.title, panel.draw, panel.height) for panel in panels(results)]
    notes = ["Scores are means over seeds, with sample standard deviations."]
    if any(row.compare for row in results.rows):
        notes[0] += (
            " Intervals, also the bars in the plots, are at 95 %, by a bootstrap over the "
            "evaluated instances (paired for differences) and, for several seeds, Student's t "
            "distribution. Best on dev is the best score on the validation data, and epochs to "
            "baseline is how many epochs it takes to reach that of the baseline, as the mean over "
            "the seeds that reach it: 9 (2 of 3) if two of three do."
        )
    if any(column.paper is not None for row in results.rows for column in row.columns):
        notes[0] += " The paper's scores are of other data: compare differences."
    if results.num_missing():
        notes.append(f"Runs without a score yet: {results.num_missing()}.")
    return Section(results.title, str(path), notes, figures, score_tables(results), results.command)


def _tags(content: Dict[str, Any], path: Path) -> Section:
    scores = content["scores"]
    tag = content["tag"]
    # The paper has parts of speech only.
    is_pos = tag in ("upos", "xpos")
    names = [_named(score) for score in scores]
    values = [100 * score["test"]["overall"] for score in scores]
    intervals = [[100 * bound for bound in score["test"]["interval"]] for score in scores]
    what = f"Table 6: parts of speech ({tag.upper()})" if is_pos else f"Tags ({tag})"
    title = f"{what} with a linear classifier on frozen vectors"
    papers = [_paper(_PAPER_TAGS, score) if is_pos else "" for score in scores]
    note = f"Accuracy on test, and its interval at 95 %. {_PAIRED}"
    lines = [
        [name, paper, f"{value:.2f}", f"{low:.2f} to {high:.2f}", _from_row_above(score, 2)]
        for name, paper, value, (low, high), score in zip(names, papers, values, intervals, scores)
    ]
    return Section(
        title,
        str(path),
        [f"{note} {_HOLLOW}, on the Penn Treebank." if is_pos else note],
        [_bars("accuracy on test, %", names, values, intervals, papers)],
        [Table(["vectors", "paper", "test", "95 %", "from the row above, 95 %"], lines)],
        content.get("command", ""),
    )


def _senses(content: Dict[str, Any], path: Path) -> Section:
    scores = content["scores"]
    names = [_named(score) for score in scores]
    found = scores[0]["scores"]
    # In the order: test sets, parts of speech (in capitals), all.
    groups = sorted(found, key=lambda group: (group == "all", group.isupper()))
    values = [100 * score["scores"]["all"]["f1"] for score in scores]
    intervals = [[100 * bound for bound in score["interval"]] for score in scores]
    title = "Table 5: word senses by the nearest mean vector"
    papers = [_paper(_PAPER_SENSES, score) for score in scores]
    lines = [
        [
            name,
            paper,
            *(f"{100 * score['scores'][group]['f1']:.1f}" for group in groups),
            f"{low:.1f} to {high:.1f}",
            _from_row_above(score, 1),
        ]
        for name, paper, score, (low, high) in zip(names, papers, scores, intervals)
    ]
    return Section(
        title,
        str(path),
        [f"F1 of each test set and part of speech. {_PAIRED} {_HOLLOW}, on five test sets."],
        [_bars("F1 of all words, %", names, values, intervals, papers)],
        [Table(["vectors", "paper", *groups, "all, 95 %", "from the row above, 95 %"], lines)],
        content.get("command", ""),
    )


def _from_row_above(score: Dict[str, Any], num_decimals: int) -> str:
    """The difference and its interval; empty where the row above is of other vectors."""
    found = score.get("from_previous")
    return Difference(**found).in_percent(num_decimals) if found else ""


def _layer_weights(content: List[Dict[str, Any]], path: Path) -> Section:
    return mixes_section([LayerWeights(**mix) for mix in content], path)


def mixes_section(mixes: List[LayerWeights], path: Path) -> Section:
    """The section of the weights of layers."""
    title = "Figure 2: weights of the layers"
    names = [f"{model_label(mix, mixes)}, {mix.at}" for mix in mixes]
    (*layers, gamma), *weights = weight_table(mixes)
    draw = partial(draw_weights, mixes=mixes, labels=names, num_layers=len(layers))
    return Section(
        title,
        str(path),
        ["Softmax-normalised, unless they were fixed. Layer 0 is the token layer."],
        [Figure("weight of each layer", draw, _height(names))],
        [Table(["model", *layers, gamma], [[name, *row] for name, row in zip(names, weights)])],
    )


def _learning_curve(content: List[Dict[str, Any]], path: Path) -> Section:
    title = "The biLM while it was trained"
    # A training that has just begun has no perplexity yet; one that diverged has no finite one.
    points = [p for p in content if p["perplexity"] and math.isfinite(p["perplexity"])]

    def draw(axes: Any) -> None:
        axes.plot(
            [point["tokens"] / 1e6 for point in points],
            [point["perplexity"] for point in points],
            color=COLOURS[0],
            marker=MARKERS[0],
            markersize=3,
        )
        axes.set(xscale="log", yscale="log", xlabel="million tokens read", ylabel="perplexity")
        axes.grid(True, which="both", color="#999999", alpha=0.3, linewidth=0.5)
        axes.tick_params(which="both", labelsize=7)

    # A forward-only language model has no backward perplexity.
    names = ("perplexity", "forward_perplexity", "backward_perplexity")
    known = [name for name in names if name in content[0]]
    lines = [
        [f"{point['tokens'] / 1e6:.1f}", *(f"{point[name]:.1f}" for name in known)]
        for point in points
    ]
    head = ["million tokens", *(name.removesuffix("_perplexity") for name in known)]
    figures = [Figure("held-out perplexity", draw)] if points else []
    return Section(
        title, str(path), ["Perplexity of held-out text."], figures, [Table(head, lines)]
    )


def _bars(
    caption: str,
    names: List[str],
    values: List[float],
    intervals: List[List[float]],
    papers: List[str],
) -> Figure:
    """Values with their intervals, one row each, and the paper's value if it has one."""

    def draw(axes: Any) -> None:
        heights = range(len(names))[::-1]
        errors = [
            [max(0.0, value - low) for value, (low, _) in zip(values, intervals)],
            [max(0.0, high - value) for value, (_, high) in zip(values, intervals)],
        ]
        axes.errorbar(
            values, heights, xerr=errors, fmt="o", color=COLOURS[0], markersize=4, capsize=2
        )
        known = [(float(paper), height) for paper, height in zip(papers, heights) if paper]
        hollow = {"markerfacecolor": "none", "linestyle": "none", "markersize": 4}
        axes.plot(*zip(*known), marker=MARKERS[1], color=COLOURS[1], **hollow)
        axes.set_xlabel(caption, fontsize=8)
        axes.set_yticks(heights, [label_of(name) for name in names], fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(True, axis="x", color="#999999", alpha=0.3, linewidth=0.5)

    return Figure(caption, draw, _height(names))


def _height(names: List[str]) -> float:
    return 0.8 + 0.28 * len(names)


def _named(score: Dict[str, Any]) -> str:
    return ", ".join(filter(None, [score["representation"], score["layer"]]))


def _paper(known: Dict[str, Any], score: Dict[str, Any]) -> str:
    """The paper's score of a layer, or an empty string."""
    values = known.get(score["representation"], ())
    number = "".join(filter(str.isdigit, score["layer"]))
    index = int(number) - 1 if number else 0
    is_known = bool(values) and 0 <= index < len(values) and bool(number) == (len(values) > 1)
    return values[index] if is_known else ""


_KINDS: List[Tuple[Set[str], Type, Callable[..., Section]]] = [
    ({"title", "runs", "rows", "scores"}, dict, _study),
    ({"tag", "l2", "scores"}, dict, _tags),
    ({"num_senses_in_training", "scores"}, dict, _senses),
    ({"archive", "at", "gamma", "weights"}, list, _layer_weights),
    ({"checkpoint", "tokens", "perplexity"}, list, _learning_curve),
]
