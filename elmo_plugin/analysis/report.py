"""Builds a page of results: studies and probes."""

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy

from elmo_plugin.analysis.studies.plots import Figure, figures
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.tables import Table, score_tables
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
    Reads JSON from `elmo study` (`results.json`) or `elmo probe`; `None` for any other file. Raises
    `ConfigurationError` if such a file lacks a field.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    for names, make in _KINDS:
        if isinstance(content, dict) and names <= content.keys():
            try:
                section = make(content, path)
                # Drawing finds what else is wrong.
                assert all(figure.svg for figure in section.figures)
                return section
            except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
                raise ConfigurationError(
                    f"{path}: expected results as this version writes them, found {error!r}. Make "
                    "them again, or move the file away."
                ) from error
    return None


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
    figure = Figure(caption, 0.8 + 0.28 * len(names), draw)
    return Section(title, str(path), [note], [figure], [table], content.get("command", ""))


# The fields by which a file of results is known.
_KINDS: List[Tuple[Set[str], Callable[..., Section]]] = [
    ({"title", "runs", "rows", "scores"}, _study),
    ({"tag", "l2", "scores"}, _tags),
    ({"num_senses_in_training", "scores"}, _senses),
]
