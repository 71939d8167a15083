"""Builds a page of results: studies, probes, layer weights, trained models, learning curves."""

import json
import math
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import numpy

from elmo_plugin.analysis.layer_weights import (
    LayerWeights,
    draw_weights,
    model_label,
    stored_layer_weights,
    weight_table,
)
from elmo_plugin.analysis.studies.plots import Figure, figures
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import validation_metric
from elmo_plugin.analysis.studies.tables import Table, score_tables
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.util.bootstrap import Difference
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.plotting import finish_axis, label_of, mark_style

_LAYERS = [(name, f"layer {number}") for name in ("CoVe", "biLM") for number in (1, 2)]
# Table 6 of Peters et al. (2018): accuracy on the Penn Treebank.
_PAPER_TAGS = dict(zip(_LAYERS, ("93.3", "92.8", "97.3", "96.8")))
# Table 5: F1 on all five test sets.
_PAPER_SENSES = dict(zip([("first sense", ""), *_LAYERS], ("65.9", "59.4", "64.7", "67.4", "69.0")))
_HOLLOW = "Hollow marks are the paper's scores"
_PAIRED = "The interval of a difference is paired: it can exclude zero although the others overlap."


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    #: The file from which the section was read.
    source: str
    #: Paragraphs of plain text.
    notes: List[str]
    figures: List[Figure]
    tables: List[Table]
    #: The command that wrote the results.
    command: str = ""


def page(title: str, sections: List[Section]) -> str:
    """Renders a self-contained HTML page. Raises `ImportError` if Jinja is not installed."""
    jinja2 = optional_package("jinja2", "A report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = (files("elmo_plugin.analysis") / "report.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(title=title, sections=sections)


def read_section(path: Path) -> Optional[Section]:
    """
    Reads JSON from `elmo study` (`results.json`), `elmo probe`, `elmo layer-weights` or
    `scripts/learning_curve.py`; `None` for any other file. Raises `ConfigurationError` if such a
    file lacks a field.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    first = content[0] if isinstance(content, list) and content else content
    for names, container, make in _KINDS:
        if isinstance(content, container) and isinstance(first, dict) and names <= first.keys():
            with _explained(path):
                section = make(content, path)
                # Drawing finds what else is wrong.
                assert all(figure.svg for figure in section.figures)
                return section
    return None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected results as this version writes them, found {error!r}. Make them "
            "again, or move the file away."
        ) from error


def models_section(archives: List[Path]) -> Section:
    """
    Shows trained models, from `model.tar.gz` and `metrics.json`: their best scores on dev and layer
    weights. Raises `ConfigurationError` if one of these files cannot be read.
    """
    lines: List[List[str]] = []
    weights: List[LayerWeights] = []
    for archive in archives:
        model = TrainedModel.read(archive)
        name = str(model.config.get("model", {}).get("type", ""))
        lines.append([str(archive), name, *_validation(archive, model.config)])
        weights += stored_layer_weights(model)
    folder, more = str(archives[0].parent), len(archives) - 1
    source = f"{folder} and {more} more" if more else folder
    scores = Table(["archive", "model", "metric", "best on dev"], lines, 3)
    notes = ["Best on dev is the best score on the validation data."]
    mixes = _mixes(map(asdict, weights), archives[0]) if weights else Section("", "", [], [], [])
    notes, tables = notes + mixes.notes, [scores, *mixes.tables]
    return Section("Trained models", source, notes, mixes.figures, tables)


def _validation(archive: Path, config: Dict[str, Any]) -> Tuple[str, str]:
    """The metric and its best value on dev, in percent if it is a fraction; empty if unknown."""
    path, signed = archive.parent / "metrics.json", validation_metric(config)
    metric = signed.lstrip("+-")
    with _explained(path):
        metrics = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        value = metrics.get(f"best_validation_{metric}")
    if not isinstance(value, (int, float)):
        return metric, ""
    is_fraction = not signed.startswith("-") and 0 <= value <= 1
    return metric, f"{100 * value:.2f}" if is_fraction else f"{value:.3f}"


def _study(content: Dict[str, Any], path: Path) -> Section:
    results = Results(path)
    note = "Scores are means over seeds, with sample standard deviations."
    if any(row.compare for row in results.rows):
        note += (
            " Intervals, also the bars in the plots, are at 95 %, by a bootstrap over the "
            "evaluated instances (paired for differences) and, for several seeds, Student's t "
            "distribution. Best on dev is the best score on the validation data, and epochs to "
            "baseline is how many epochs it takes to reach that of the baseline, as the mean over "
            "the seeds that reach it: 9 (2 of 3) if two of three do."
        )
    if any(column.paper is not None for row in results.rows for column in row.columns):
        note += " The paper's scores are of other data: compare differences."
    missing = results.num_missing()
    notes = [note, *([f"Runs without a score yet: {missing}."] if missing else [])]
    tables = score_tables(results)
    return Section(results.title, str(path), notes, figures(results), tables, results.command)


def _tags(content: Dict[str, Any], path: Path) -> Section:
    for score in content["scores"]:
        score["shares"] = {"test": score["test"]["overall"]}
        score["interval"] = score["test"]["interval"]
    tag = content["tag"]
    # The paper probes only parts of speech.
    is_pos = tag in ("upos", "xpos")
    what = f"Table 6: parts of speech ({tag.upper()})" if is_pos else f"Tags ({tag})"
    hollow = f" {_HOLLOW}, on the Penn Treebank." if is_pos else ""
    return _probe(
        content,
        path,
        f"{what} with a linear classifier on frozen vectors",
        f"Accuracy on test, and its interval at 95 %. {_PAIRED}{hollow}",
        "accuracy on test, %",
        _PAPER_TAGS if is_pos else {},
        num_decimals=2,
    )


def _senses(content: Dict[str, Any], path: Path) -> Section:
    for score in content["scores"]:
        # In the order: test sets, parts of speech (in capitals), all.
        groups = sorted(score["scores"], key=lambda group: (group == "all", group.isupper()))
        score["shares"] = {group: score["scores"][group]["f1"] for group in groups}
    return _probe(
        content,
        path,
        "Table 5: word senses by the nearest mean vector",
        f"F1 of each test set and part of speech. {_PAIRED} {_HOLLOW}, on five test sets.",
        "F1 of all words, %",
        _PAPER_SENSES,
        num_decimals=1,
    )


def _probe(
    content: Dict[str, Any],
    path: Path,
    title: str,
    note: str,
    caption: str,
    papers: Dict[Tuple[str, str], str],
    num_decimals: int,
) -> Section:
    """Makes a line for each layer, and draws the last of its `shares` with the `interval`."""
    heads = list(content["scores"][0]["shares"])
    lines, names, of_paper, bars = [], [], [], []
    for score in content["scores"]:
        vectors = (score["representation"], score["layer"])
        values = [100 * share for share in (*score["shares"].values(), *score["interval"])]
        names.append(", ".join(filter(None, vectors)))
        of_paper.append(papers.get(vectors, ""))
        bars.append(values[-3:])
        *texts, low, high = (f"{value:.{num_decimals}f}" for value in values)
        # The row above may show other vectors.
        found = score.get("from_previous")
        change = Difference(**found).in_percent(num_decimals) if found else ""
        lines.append([names[-1], of_paper[-1], *texts, f"{low} to {high}", change])

    def draw(axes: Any) -> None:
        heights = range(len(names))[::-1]
        values, lows, highs = numpy.transpose(bars)
        errors = numpy.maximum(0.0, [values - lows, highs - values])
        style = {**mark_style(0), "markersize": 4}
        axes.errorbar(values, heights, xerr=errors, capsize=2, **style)
        known = [(float(paper), height) for paper, height in zip(of_paper, heights) if paper]
        style = {**mark_style(1), "markersize": 4, "markerfacecolor": "none"}
        axes.plot(*zip(*known), **style)
        axes.set_xlabel(caption, fontsize=8)
        axes.set_yticks(heights, [label_of(name) for name in names], fontsize=8)
        finish_axis(axes, "x")

    interval = "all, 95 %" if "all" in heads else "95 %"
    table = Table(["vectors", "paper", *heads, interval, "from the row above, 95 %"], lines)
    figure = Figure(caption, _height(names), draw)
    return Section(title, str(path), [note], [figure], [table], content.get("command", ""))


def _mixes(content: Iterable[Dict[str, Any]], path: Path) -> Section:
    mixes = [LayerWeights(**mix) for mix in content]
    names = [f"{model_label(mix, mixes)}, {mix.at}" for mix in mixes]
    (*layers, gamma), *weights = weight_table(mixes)
    draw = partial(draw_weights, mixes=mixes, labels=names, num_layers=len(layers))
    return Section(
        "Figure 2: weights of the layers",
        str(path),
        ["Softmax-normalised, unless they were fixed. Layer 0 is the token layer."],
        [Figure("weight of each layer", _height(names), draw)],
        [Table(["model", *layers, gamma], [[name, *row] for name, row in zip(names, weights)])],
    )


def _height(names: List[str]) -> float:
    return 0.8 + 0.28 * len(names)


def _learning_curve(content: List[Dict[str, Any]], path: Path) -> Section:
    # Training has no perplexity at the start, and no finite one once it diverges.
    points = [p for p in content if p["perplexity"] and math.isfinite(p["perplexity"])]

    def draw(axes: Any) -> None:
        places = [(point["tokens"] / 1e6, point["perplexity"]) for point in points]
        axes.plot(*zip(*places), **{**mark_style(0, linestyle="-"), "markersize": 3})
        axes.set(xscale="log", yscale="log", xlabel="million tokens read", ylabel="perplexity")
        finish_axis(axes, "both")

    # A forward-only language model has no backward perplexity.
    names = ("perplexity", "forward_perplexity", "backward_perplexity")
    known = [name for name in names if name in content[0]]
    lines = [
        [f"{point['tokens'] / 1e6:.1f}", *(f"{point[name]:.1f}" for name in known)]
        for point in points
    ]
    head = ["million tokens", *(name.removesuffix("_perplexity") for name in known)]
    return Section(
        "The biLM while it was trained",
        str(path),
        ["Perplexity of held-out text."],
        [Figure("held-out perplexity", 3.0, draw)] if points else [],
        [Table(head, lines)],
    )


_KINDS: List[Tuple[Set[str], type, Callable[..., Section]]] = [
    ({"title", "runs", "rows", "scores"}, dict, _study),
    ({"tag", "l2", "scores"}, dict, _tags),
    ({"num_senses_in_training", "scores"}, dict, _senses),
    ({"archive", "at", "gamma", "weights"}, list, _mixes),
    ({"checkpoint", "tokens", "perplexity"}, list, _learning_curve),
]
