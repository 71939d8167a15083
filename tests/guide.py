"""The pages of the guide as tests read them: blocks of code, and a folder to run them in."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

PROJECT = Path(__file__).resolve().parents[1]
FIXTURES = PROJECT / "fixtures"
# What the guide calls the corpora and the biLM of its reader.
PLACES = {
    "/corpora/glove/wiki-sgns.100d.txt.gz": FIXTURES / "corpora/glove/vectors.100d.txt.gz",
    "/corpora": FIXTURES / "corpora",
    "/models/elmo": FIXTURES / "bilm",
    "/models/many_langs": FIXTURES / "many_langs/both",
}

_FENCE = re.compile(r"^```(\w*)$")
_REASON = re.compile(r"^<!-- not run in tests: (.+) -->$")
_FILE = re.compile(r"^`([\w./-]+)`:$")


@dataclass(frozen=True)
class Block:
    """
    A fenced block of a page.

    `reason` says why it is not run, from the comment `<!-- not run in tests: … -->` above it.
    `file` is the name of the file it is the content of, if a line with nothing but that name and
    a colon stands above it.
    """

    page: Path
    line: int
    language: str
    text: str
    reason: Optional[str]
    file: Optional[str]

    def __str__(self) -> str:
        return f"{self.page.relative_to(PROJECT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    above, start, language = "", None, ""
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if start is None and fence:
            start, language = number, fence[1]
        elif start is not None and line == "```":
            reason, file = _REASON.match(above), _FILE.match(above)
            yield Block(
                page=page,
                line=start,
                language=language,
                text="\n".join(lines[start : number - 1]) + "\n",
                reason=reason and reason[1],
                file=file and file[1],
            )
            start, above = None, ""
        elif start is None and line:
            above = line


def with_places(text: str) -> str:
    """The text, with the folders of the fixtures for those of the reader."""
    for place, folder in PLACES.items():
        text = re.sub(rf"(?<![\w/.]){place}\b", str(folder), text)
    return text


def make_workplace(folder: Path) -> None:
    """
    The folders of the project that the guide names. Experiments train for one epoch, as small as
    those of the fixtures.
    """
    for name in ("benchmarks", "examples", "fixtures", "pretrained", "scripts"):
        (folder / name).symlink_to(PROJECT / name)
    one_epoch = "{ settings+: { num_epochs: 1 } }\n"
    for path in (FIXTURES / "experiments").glob("*.jsonnet"):
        _write(folder / "experiments" / path.name, f"(import '{path}') + {one_epoch}")
    for path in (PROJECT / "experiments/ablations").glob("*.jsonnet"):
        task = path.name.partition("_")[0].removesuffix("2.jsonnet").removesuffix("2")
        task = {"bilm": "lm", "chunking": "ner"}.get(task, task)
        small = FIXTURES / f"experiments/small_{task}.libsonnet"
        text = f"(import '{path}') + (import '{small}') + {one_epoch}"
        _write(folder / "experiments/ablations" / path.name, text)
    for name in ("lib", "results"):
        (folder / "experiments" / name).symlink_to(PROJECT / "experiments" / name)


def write_file(block: Block, folder: Path) -> None:
    """
    Writes the file that a block shows. A block of the language `diff` changes lines of a file that
    is there: `-` and `+` in the first column, and unchanged lines around them.
    """
    path, text = folder / block.file, with_places(block.text)
    if block.language == "diff":
        before, after = (
            "".join(line[1:] or "\n" for line in text.splitlines(keepends=True) if line[0] in marks)
            for marks in ("\n -", "\n +")
        )
        whole = path.read_text(encoding="utf-8")
        assert whole.count(before) == 1, f"{block}: {block.file} does not have these lines once"
        text = whole.replace(before, after)
    _write(path, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
