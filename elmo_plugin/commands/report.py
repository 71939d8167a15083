"""
Write one page of HTML about results, OUT/report.html, with plots and numbers beside the paper's. It
contains its pictures and needs no network.

OUT is searched for JSON files: results.json of `allennlp elmo-study`, what `elmo probe pos`, `elmo
probe wsd` and `elmo layer-weights` write with --json, and those of scripts/learning_curve.py; and
for model.tar.gz of training runs that are not of a study. Other files are ignored.

example:
    %(prog)s out
    %(prog)s experiments/results --title "My biLM" --pictures pictures
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Set

from elmo_plugin.analysis.report import Section, models_section, page, read_section
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.util.atomic_write import atomic_write, check_output
from elmo_plugin.util.errors import ConfigurationError


@dataclass(kw_only=True)
class Options:
    out: Path = positional("OUT", "folder with results")
    title: str = option("title of the page", "ELMo: results")
    pictures: Optional[Path] = option("write each picture there, as SVG, too", metavar="FOLDER")


def run(args: Options) -> str:
    folder = args.out
    output = check_output(folder / "report.html", force=True)
    sections = [section for path in _files(folder, "*.json") if (section := read_section(path))]
    sections.sort(key=lambda section: section.title)
    if archives := list(_files(folder, "model.tar.gz")):
        sections.append(models_section(archives))
    if not sections:
        raise ConfigurationError(
            f"{folder}: expected results (of elmo-study, a training run, or elmo probe and elmo "
            "layer-weights with --json), found none."
        )
    if args.pictures:
        _write_pictures(sections, args.pictures)
    with atomic_write(output) as unfinished:
        unfinished.write_text(page(args.title, sections), encoding="utf-8")
    return f"{output}: {len(sections)} section{'' if len(sections) == 1 else 's'}."


def _write_pictures(sections: List[Section], folder: Path) -> None:
    """Names a picture by its results file and caption: `tags_xpos-accuracy-on-test.svg`."""
    written: Set[str] = set()
    for section in sections:
        for figure in section.figures:
            caption = f"{_short_name(section)}-{figure.caption.lower()}"
            name = re.sub(r"\W+", "-", caption).strip("-")
            # Two folders may have studies of the same name.
            while name in written:
                name += "-2"
            written.add(name)
            with atomic_write(folder / f"{name}.svg") as unfinished:
                unfinished.write_bytes(figure.svg)


def _short_name(section: Section) -> str:
    source = Path(section.source).resolve()
    if source.suffix != ".json":
        return "models"
    # Every study writes `results.json`; its folder has the name.
    return source.parent.name if source.stem == "results" else source.stem


def _files(folder: Path, pattern: str) -> Iterator[Path]:
    """The files of this name, except those in the folders of a study's runs."""
    for path in sorted(folder.rglob(pattern)):
        folders = [folder / each for each in path.relative_to(folder).parents]
        if not any(f.name == "runs" and (f.parent / "results.json").exists() for f in folders):
            yield path
