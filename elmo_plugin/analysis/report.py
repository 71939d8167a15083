"""Builds a page of results: what holds, and the studies and probes that say so."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Set, Tuple, Union

import numpy

from elmo_plugin.analysis.studies.findings import Finding, findings, note_epochs, verdict
from elmo_plugin.analysis.studies.plots import Figure, draw_intervals, figures, forest, name_lines
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.tables import Table, score_tables
from elmo_plugin.util.bootstrap import Difference, Interval
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.plotting import label_of, mark_style

_LAYERS = [(name, f"layer {number}") for name in ("CoVe", "biLM") for number in (1, 2)]
# Table 6 of Peters et al. (2018): accuracy on the Penn Treebank.
_PAPER_TAGS = dict(zip(_LAYERS, ("93.3", "92.8", "97.3", "96.8")))
# Table 5: F1 on all five test sets.
_PAPER_SENSES = dict(zip([("first sense", ""), *_LAYERS], ("65.9", "59.4", "64.7", "67.4", "69.0")))


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    #: The file from which the section was read.
    source: str
    figures: List[Figure]
    tables: List[Table]
    findings: List[Finding]
    #: The command that wrote the results.
    command: str = ""


def page(title: str, sections: List[Section]) -> str:
    """Renders a self-contained HTML page. Raises `ImportError` if Jinja is not installed."""
    jinja2 = optional_package("jinja2", "A report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = (files("elmo_plugin.analysis") / "report.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(title=title, sections=sections)


def read_sections(paths: Iterable[Path]) -> List[Section]:
    """
    Reads JSON of `elmo study` (`results.json`), `elmo probe`, and files with `title`, `findings`
    and `tables`; skips others. The paper's tables come first, then its figures. Raises
    `ConfigurationError` if such a file lacks a field.
    """
    parts: List[Tuple[Path, Union[Results, Section]]] = []
    epochs: Dict[str, int] = {}
    for path in paths:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        for names, make in _KINDS:
            if isinstance(content, dict) and names <= content.keys():
                with _naming(path):
                    parts.append((path, made := make(content, path)))
                    if isinstance(made, Results):
                        note_epochs(made, epochs)
    sections = []
    for path, part in parts:
        with _naming(path):
            section = _study(part, path, epochs) if isinstance(part, Results) else part
            # Drawing finds what else is wrong.
            assert all(figure.svg for figure in section.figures)
            sections.append(section)
    order = ("Table", "Figure")
    return sorted(sections, key=lambda s: ([not s.title.startswith(o) for o in order], s.title))


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors in the content of a file name the file."""
    try:
        yield
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected results as this version writes them, found {error!r}. Make them "
            "again, or move the file away."
        ) from error


def _study(results: Results, path: Path, epochs: Mapping[str, int]) -> Section:
    found, tables = findings(results, epochs), score_tables(results)
    drawn = figures(results, found)
    return Section(results.title, str(path), drawn, tables, found, results.command)


def _findings(content: Dict[str, Any], path: Path) -> Section:
    found = []
    for each in content["findings"]:
        value, bounds = each["difference"]
        found.append(Finding(**{**each, "difference": Difference(value, Interval(*bounds))}))
    tables = [Table(**each) for each in content["tables"]]
    return Section(content["title"], str(path), forest(found), tables, found, content["command"])


def _tags(content: Dict[str, Any], path: Path) -> Section:
    for score in content["scores"]:
        score["shares"] = {"test": score["test"]["overall"]}
        score["interval"] = score["test"]["interval"]
    tag = content["tag"]
    # The paper probes only parts of speech.
    is_pos = tag in ("upos", "xpos")
    what = f"Table 6: parts of speech ({tag.upper()})" if is_pos else f"Tags ({tag})"
    title = f"{what} with a linear classifier on frozen vectors"
    papers = (_PAPER_TAGS, "paper, Penn Treebank") if is_pos else ({}, "paper")
    return _probe(content, path, tag, title, "accuracy on test, %", *papers, num_decimals=2)


def _senses(content: Dict[str, Any], path: Path) -> Section:
    for score in content["scores"]:
        # In the order: test sets, parts of speech (in capitals), all.
        groups = sorted(score["scores"], key=lambda group: (group == "all", group.isupper()))
        score["shares"] = {group: score["scores"][group]["f1"] for group in groups}
    title, caption = "Table 5: word senses by the nearest mean vector", "F1 of all words, %"
    papers = (_PAPER_SENSES, "paper, five test sets")
    return _probe(content, path, "Word senses", title, caption, *papers, num_decimals=1)


def _probe(
    content: Dict[str, Any],
    path: Path,
    where: str,
    title: str,
    caption: str,
    papers: Dict[Tuple[str, str], str],
    of_papers: str,
    num_decimals: int,
) -> Section:
    """A line per layer, and a plot of its last share. `of_papers` heads the paper's scores."""
    scores = content["scores"]
    heads = list(scores[0]["shares"])
    lines, names, of_paper, bars, found = [], [], [], [], []
    for score in scores:
        vectors = (score["representation"], score["layer"])
        values = [100 * share for share in (*score["shares"].values(), *score["interval"])]
        names.append(", ".join(filter(None, vectors)))
        of_paper.append(papers.get(vectors, ""))
        bars.append(values[-3:])
        *texts, low, high = (f"{value:.{num_decimals}f}" for value in values)
        change = ""
        # Without, the row above shows other vectors.
        if previous := score.get("from_previous"):
            difference = Difference(previous["value"], Interval(*previous["interval"]))
            change = difference.in_percent(num_decimals)
            claim = (where, names[-1], names[-2], difference, verdict(difference.interval))
            found.append(Finding(*claim, is_main=vectors[0] == scores[-1]["representation"]))
        lines.append([names[-1], of_paper[-1], *texts, f"{low} to {high}", change])

    def draw(axes: Any) -> None:
        values, *intervals = numpy.transpose(bars)
        heights = range(len(names))
        draw_intervals(axes, heights, values, numpy.transpose(intervals), 0, markersize=4)
        known = [(float(paper), height) for height, paper in enumerate(of_paper) if paper]
        style = {**mark_style(1), "markersize": 4, "markerfacecolor": "none"}
        axes.plot(*zip(*known), **style)
        axes.set_xlabel(caption, fontsize=8)
        name_lines(axes, [label_of(name) for name in names])

    interval = "all, 95 %" if "all" in heads else "95 %"
    head = [where, of_papers, *heads, interval, "from the row above, 95 %"]
    drawn, tables = [Figure(caption, 0.8 + 0.28 * len(names), draw)], [Table(head, lines)]
    return Section(title, str(path), drawn, tables, found, content.get("command", ""))


# The fields by which a file of results is known.
_KINDS: List[Tuple[Set[str], Callable[..., Union[Results, Section]]]] = [
    ({"title", "runs", "rows", "scores"}, lambda content, path: Results(path)),
    ({"tag", "l2", "scores"}, _tags),
    ({"num_senses_in_training", "scores"}, _senses),
    ({"title", "findings", "tables"}, _findings),
]
