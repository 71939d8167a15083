"""
Shared by the benchmarks: rows of results, interleaved measurements, the limits of the machine.

A row has the results of `ours` and `peer` in `unit`, measured in one run. `ratio` is ours / peer:
above 1, ours is better for a rate and worse for a time. `share_of_limit` is ours / limit (for a
time, limit / ours); each benchmark says what limits it. `floor` and `aim` are the required and the
desired value of one of these figures:

    ">= 2x", "<= 1.25x"          of the ratio
    ">= 85 % of limit"           of the share of the limit
    "<= 0.3 s"                   of ours, in the row's own unit

Figures that do not apply are `None`, in JSON null.
"""

import argparse
import json
import math
import os
import platform
import random
import re
import statistics
import time
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional

import torch

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.corpora import sentence_per_line
from elmo_plugin.util.atomic_write import atomic_write, write_json
from elmo_plugin.util.errors import ConfigurationError

REQUIREMENT = re.compile(r"(>=|<=) ([\d.,]+(?:e-?\d+)?)(x| .+)")


def machine() -> str:
    """The processor, its number of compute threads, and the GPU if there is one."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"^model name\s*: (.*)", cpuinfo.read_text(), re.MULTILINE)
        name = found.group(1) if found else name
    threads = torch.get_num_threads()
    parts = [name, f"{threads} core{'s' if threads > 1 else ''}"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def versions() -> Dict[str, str]:
    found = {name: metadata.version(name) for name in ("torch", "allennlp", "elmo_plugin")}
    return {"python": platform.python_version(), **found}


@dataclass(frozen=True)
class Row:
    """
    One row of the results; see the docstring of this file.

    # Raises

    `ValueError`
        If a figure is out of range, or `floor` or `aim` needs a figure that the row lacks.
    """

    name: str
    unit: str
    ours: float
    peer: Optional[float] = None
    ratio: Optional[float] = field(init=False)
    share_of_limit: Optional[float] = None
    floor: Optional[str] = None
    aim: Optional[str] = None
    machine: str = field(default_factory=machine)
    versions: Dict[str, str] = field(default_factory=versions)
    date: str = field(default_factory=lambda: date.today().isoformat())

    def __post_init__(self) -> None:
        # Some rows are differences, which may be negative.
        least = {"ours": -math.inf, "peer": 0.0, "share_of_limit": 0.0}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and not bound < value < math.inf:
                raise ValueError(
                    f"{self.name}: expected `{name}` between {bound} and inf, found {value}."
                )
        object.__setattr__(self, "ratio", None if self.peer is None else self.ours / self.peer)
        for requirement in (self.floor, self.aim):
            if requirement is not None:
                self.meets(requirement)

    def meets(self, requirement: str) -> bool:
        """Whether `requirement`, written as `floor` and `aim` are, is met."""
        parsed = REQUIREMENT.fullmatch(requirement)
        figures = {
            "x": (self.ratio, 1.0),
            " % of limit": (self.share_of_limit, 0.01),
            f" {self.unit}": (self.ours, 1.0),
        }
        value, scale = figures.get(parsed.group(3), (None, 1.0)) if parsed else (None, 1.0)
        if value is None:
            raise ValueError(
                f"{self.name}: expected a requirement of a figure that the row has, such as "
                f"'>= 2x', '>= 85 % of limit' or '<= 0.3 {self.unit}', found {requirement!r}."
            )
        bound = scale * float(parsed.group(2).replace(",", ""))
        return value >= bound if parsed.group(1) == ">=" else value <= bound

    @classmethod
    def from_dict(cls, entry: Dict[str, Any]) -> "Row":
        expected = [item.name for item in fields(cls)]
        if list(entry) != expected:
            raise ValueError(f"Expected a row with {expected}, found {list(entry)}.")
        return cls(**{name: value for name, value in entry.items() if name != "ratio"})


def read_rows(path: Path) -> List[Row]:
    return [Row.from_dict(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def merge_rows(path: Path, rows: Iterable[Row]) -> None:
    """
    Merges `rows` into the results at `path`: a row replaces the one with its name, or is appended.
    The file is written atomically.
    """
    merged = {row.name: row for row in (read_rows(path) if path.exists() else [])}
    merged.update((row.name, row) for row in rows)
    write_json(path, [asdict(row) for row in merged.values()])


def by_turns(runs: Dict[str, Callable[[int], Any]], turns: int) -> Dict[str, List[float]]:
    """
    Seconds of each run in each turn. In a turn, every run is called once with the number of the
    turn, so that changes of the speed of the machine affect all runs. Turn 0 is a warm-up and not
    counted.
    """
    seconds: Dict[str, List[float]] = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run(turn)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if turn > 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def median_rate(seconds: List[float], amounts: Iterable[float]) -> float:
    """The median over the turns of the amount per second."""
    return statistics.median(amount / value for amount, value in zip(amounts, seconds))


def best_rate(run: Callable[[], Any], amount: float, seconds: float = 1.0) -> float:
    """`amount` per second in the fastest of the runs that are started within `seconds`."""
    run()
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return amount / best


@lru_cache(maxsize=None)
def product_rate(dtype: torch.dtype, device: str = "cpu") -> float:
    """The best rate of matrix products with the shapes of a biLM, in operations per second."""
    rates = []
    shapes = [(800, 2048, 2048), (256, 4096, 512), (1024, 1024, 1024)]
    if device == "cuda":
        shapes = [(16384, 512, 16384), (8192, 8192, 8192)]
    for rows, inner, columns in shapes:
        pair = (torch.randn(size, device=device) for size in ((rows, inner), (inner, columns)))
        run = finished(partial(torch.mm, *(matrix.to(dtype) for matrix in pair)), device)
        rates.append(best_rate(run, 2.0 * rows * inner * columns))
    return max(rates)


def finished(run: Callable[[], Any], device: str) -> Callable[[], Any]:
    """The run together with waiting for the GPU."""
    if device == "cpu":
        return run

    def run_and_wait() -> None:
        run()
        torch.cuda.synchronize()

    return run_and_wait


@lru_cache(maxsize=None)
def read_bandwidth(device: str = "cpu") -> float:
    """The best rate of reading uncached memory, in bytes per second."""
    memory = torch.ones(128 * 1024 * 1024, device=device)
    return best_rate(finished(memory.sum, device), 4.0 * memory.numel())


def read_sentences(path: Path, number: int) -> List[List[str]]:
    """`number` random sentences of a text, the same ones in the same order in every run."""
    if not path.exists():
        raise SystemExit(f"{path} does not exist. Set ELMO_DATA or name a text.")
    sentences = [list(words) for _, words in sentence_per_line.read_sentences(path) if words]
    if len(sentences) < number:
        raise SystemExit(
            f"{path}: expected at least {number:,} sentences, found {len(sentences):,}. Name a "
            "longer text, set ELMO_DATA to a folder that has one, or measure on fewer sentences."
        )
    random.Random(0).shuffle(sentences)
    return sentences[:number]


def default_text(name: str) -> Path:
    return Path(os.environ["ELMO_DATA"], "lm", "small", name)


def add_text(
    parser: argparse.ArgumentParser, option: str = "text", name: str = "heldout.txt"
) -> None:
    """The argument `text`, or the option `--text`, whose default is a text in `ELMO_DATA`."""
    number: Dict[str, Any] = {} if option.startswith("-") else {"nargs": "?"}
    where = f"default: $ELMO_DATA/lm/small/{name}"
    parser.add_argument(option, type=Path, default=default_text(name), help=where, **number)


def argument_parser(description: str) -> argparse.ArgumentParser:
    """A parser that prints the docstring of a script unchanged."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def measuring_parser(description: str, turns: Optional[int] = None) -> argparse.ArgumentParser:
    """A parser with `--output`, and `--turns` if the script has a default for it."""
    parser = argument_parser(description)
    parser.add_argument("--output", type=Path, help="JSON file in which to replace or add the rows")
    if turns is not None:
        parser.add_argument(
            "--turns", type=int, default=turns, help=f"number of turns; default {turns}"
        )
    return parser


def report(rows: Iterable[Row], output: Optional[Path]) -> None:
    """Prints each row and, if there is an output file, merges it into that file."""
    print(f"{'':<58}{'ours':>12}{'peer':>12}{'ratio':>8}{'of limit':>10}  {'unit':<16}floor / aim")
    for row in rows:
        figures = [f"{row.ours:>12,.5g}"]
        figures.append(f"{row.peer:>12,.5g}" if row.peer is not None else 12 * " ")
        figures.append(f"{row.ratio:>7.2f}x" if row.ratio is not None else 8 * " ")
        share = row.share_of_limit
        figures.append(f"{share:>10.0%}" if share is not None else 10 * " ")
        asked = ", ".join(filter(None, (row.floor, row.aim)))
        print(f"{row.name:<58}{''.join(figures)}  {row.unit:<16}{asked}", flush=True)
        if output:
            merge_rows(output, [row])


def replace_tables(path: Path, begin: str, end: str, tables: str) -> None:
    """
    Replaces the text between the lines `begin` and `end` of a Markdown file. Raises
    `ConfigurationError` unless `begin` occurs once and `end` follows before another comment.
    """
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"{re.escape(begin)}\n(?:(?!<!-- ).)*?{re.escape(end)}", re.DOTALL)
    found = pattern.search(text)
    if text.count(begin) != 1 or not found:
        raise ConfigurationError(f"{path}: expected one line {begin} and a line {end} after it.")
    before, after = text[: found.start()], text[found.end() :]
    with atomic_write(path) as unfinished:
        text = f"{before}{begin}\n\n{tables}\n\n{end}{after}"
        unfinished.write_text(text, encoding="utf-8")
