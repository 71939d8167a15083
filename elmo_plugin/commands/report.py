"""
Write one page of HTML about results, OUT/report.html: what holds, and plots and numbers beside the
paper's. It contains its pictures and needs no network.

OUT is searched for JSON files: results.json of `elmo study`, and what `elmo probe pos` and `elmo
probe wsd` write with --json. Other files are ignored.

example:
    %(prog)s out
    %(prog)s experiments/results --title "My biLM" --pictures pictures
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

from elmo_plugin.analysis.report import Section, page, read_sections
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
    sections = read_sections(sorted(folder.rglob("*.json")))
    if not sections:
        raise ConfigurationError(
            f"{folder}: expected results (of elmo study, or of elmo probe with --json), found none."
        )
    if args.pictures:
        _write_pictures(sections, args.pictures)
    with atomic_write(output) as unfinished:
        unfinished.write_text(page(args.title, sections), encoding="utf-8")
    return f"{output}: {len(sections)} section{'' if len(sections) == 1 else 's'}."


def _write_pictures(sections: List[Section], folder: Path) -> None:
    """Names a picture by its results file and caption: `tags_xpos-accuracy-on-test.svg`."""
    for section in sections:
        source = Path(section.source).resolve()
        # Every study writes `results.json`; its folder has the name.
        name = source.parent.name if source.stem == "results" else source.stem
        for figure in section.figures:
            picture = re.sub(r"\W+", "-", f"{name}-{figure.caption.lower()}").strip("-")
            with atomic_write(folder / f"{picture}.svg") as unfinished:
                unfinished.write_bytes(figure.svg)
