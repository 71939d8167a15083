"""
Seconds that the plugin adds to the start-up time of `allennlp`, and until the first answer.

    python benchmarks/startup.py
    python benchmarks/startup.py --turns 3 --output results.json

Needs no corpus. Compares `allennlp elmo --help` in a folder whose `.allennlp_plugins` names the
plugin with `allennlp --help` in an empty folder, alternately, each in a new process. An empty home
folder hides the user's own `~/.allennlp/plugins`. In the same way, compares the processor time in
which `elmo predict` and `allennlp predict` find the entities of one sentence.
"""

import os
import resource
import site
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Callable, Iterator, List, Sequence

from common import Row, by_turns, measuring_parser, report

from elmo_plugin.util.files import shipped_archives

ALLENNLP = ("-m", "allennlp")
WITH, WITHOUT = ("elmo", "--help"), ("--help",)
SENTENCE = "Ada Lovelace lived in London."


def run(folder: Path, program: Sequence[str], arguments: Sequence[str], _: int = 0) -> str:
    """The output of a program that Python starts in `folder`."""
    environment = {"HOME": str(folder), "PYTHONUSERBASE": site.getuserbase()}
    finished = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        # One thread, because several would use the processor while they wait for each other.
        env={**os.environ, **environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if finished.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{finished.stderr}")
    return finished.stdout


def processor_seconds(run: Callable[[], str]) -> float:
    """Of the processes that `run` starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start(turns: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        empty, plugged = Path(directory, "empty"), Path(directory, "plugged")
        for folder in (empty, plugged):
            folder.mkdir()
        (plugged / ".allennlp_plugins").write_text("elmo_plugin.plugin\n", encoding="utf-8")
        if " elmo-embed " in run(empty, ALLENNLP, WITHOUT):
            raise SystemExit(
                "`allennlp` loads the plugin in an empty folder too, so there is no baseline."
            )
        seconds = by_turns(
            {
                "without": partial(run, empty, ALLENNLP, WITHOUT),
                "with": partial(run, plugged, ALLENNLP, WITH),
            },
            turns,
        )
    added = [one - other for one, other in zip(seconds["with"], seconds["without"])]
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    yield Row("Start of `allennlp elmo --help`", "s", medians["with"], medians["without"])
    yield Row("Start, added by the plugin", "s", statistics.median(added), floor="<= 0.3 s")


def first_answer(turns: int) -> Iterator[Row]:
    ours: List[float] = []
    peer: List[float] = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / ".allennlp_plugins").write_text("elmo_plugin.plugin\n", encoding="utf-8")
        (folder / "sentences.txt").write_text(f"{SENTENCE}\n", encoding="utf-8")
        elmo = (str(Path(sys.executable).with_name("elmo")),)
        archive = str(shipped_archives()["ner"])
        for _ in range(turns + 1):
            predict = partial(run, folder, elmo, ("predict", "ner", SENTENCE))
            ours.append(processor_seconds(predict))
            predict = partial(run, folder, ALLENNLP, ("predict", archive, "sentences.txt"))
            peer.append(processor_seconds(predict))
    # The first turn is a warm-up.
    medians = statistics.median(ours[1:]), statistics.median(peer[1:])
    yield Row("First answer of `elmo predict`, processor time", "s", *medians, aim="<= 0.5x")


def main() -> None:
    arguments = measuring_parser(__doc__, turns=5).parse_args()
    rows = chain(start(arguments.turns), first_answer(arguments.turns))
    report(rows, arguments.output)


if __name__ == "__main__":
    main()
