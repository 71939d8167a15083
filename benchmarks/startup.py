"""
Seconds that the plugin adds to the start-up time of `allennlp`.

    python benchmarks/startup.py
    python benchmarks/startup.py --turns 3 --output results.json

Needs no corpus. Compares `allennlp elmo --help` in a folder whose `.allennlp_plugins` names the
plugin with `allennlp --help` in an empty folder, alternately, each in a new process. An empty home
folder hides the user's own `~/.allennlp/plugins`.
"""

import os
import site
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Iterator, Sequence

from common import Row, by_turns, measuring_parser, report

WITH, WITHOUT = ("elmo", "--help"), ("--help",)


def run_allennlp(folder: Path, arguments: Sequence[str], _: int = 0) -> str:
    """The output of `allennlp` when started in `folder`."""
    finished = subprocess.run(
        [sys.executable, "-m", "allennlp", *arguments],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PYTHONUSERBASE": site.getuserbase()},
        capture_output=True,
        text=True,
    )
    if finished.returncode != 0:
        raise SystemExit(f"allennlp {' '.join(arguments)} failed:\n{finished.stderr}")
    return finished.stdout


def measure(turns: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        empty, plugged = Path(directory, "empty"), Path(directory, "plugged")
        for folder in (empty, plugged):
            folder.mkdir()
        (plugged / ".allennlp_plugins").write_text("elmo_plugin.plugin\n", encoding="utf-8")
        if " elmo " in run_allennlp(empty, WITHOUT):
            raise SystemExit(
                "`allennlp` loads the plugin in an empty folder too, so there is no baseline."
            )
        seconds = by_turns(
            {
                "without": partial(run_allennlp, empty, WITHOUT),
                "with": partial(run_allennlp, plugged, WITH),
            },
            turns,
        )
    added = [one - other for one, other in zip(seconds["with"], seconds["without"])]
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    yield Row("Start of `allennlp elmo --help`", "s", medians["with"], medians["without"])
    yield Row("Start, added by the plugin", "s", statistics.median(added), floor="<= 0.3 s")


def main() -> None:
    arguments = measuring_parser(__doc__, turns=5).parse_args()
    report(measure(arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
