"""
`elmo embed` in two processes against one, with `--num-workers` and with `--ray`.

    python benchmarks/workers.py                          # biLM of ELMO_OPTIONS, ELMO_WEIGHTS
    python benchmarks/workers.py --sentences 2000 --turns 1 --output results.json

Needs a tokenised text, one sentence per line, and Ray for its row. Every process computes with one
thread. The rate is that of the second half of a text: the seconds for the whole text minus those
for its first half, so that starting the processes does not count. `ours` is two processes, `peer`
one. The limit is the rate of two simultaneous calls of `elmo embed`, each on half of the sentences:
two cores that share a processor can be less than twice as fast as one.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence

from common import Row, add_text, by_turns, measuring_parser, read_sentences, report

AIM = ">= 1.9x"
ELMO = "from elmo_plugin.commands.main import main; main()"
RAY = "import ray; ray.init(num_cpus={}, include_dashboard=False, log_to_driver=False); " + ELMO


def start(code: str, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-c", code, "embed", *map(str, arguments), "--top", "--force"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def finish(processes: Sequence[subprocess.Popen]) -> None:
    for process in processes:
        _, said = process.communicate()
        if process.returncode:
            raise SystemExit(f"elmo embed failed: {said}")


def write(path: Path, sentences: Sequence[Sequence[str]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{' '.join(words)}\n" for words in sentences), encoding="utf-8")
    return path


def runs_of(sentences: List[List[str]], folder: Path) -> Dict[str, Callable[[int], None]]:
    """Runs of `elmo embed` on these sentences, by what is measured."""
    folder.mkdir()
    text = write(folder / "text", sentences)
    shards = [write(folder / f"shards/{half}", sentences[half::2]) for half in range(2)]

    def workers(number: int, turn: int) -> None:
        finish([start(ELMO, text, folder / "out.hdf5", "--num-workers", number)])

    def side_by_side(turn: int) -> None:
        finish([start(ELMO, shard, f"{shard}.hdf5") for shard in shards])
        for shard in shards:
            Path(f"{shard}.hdf5").unlink()

    def tasks(number: int, turn: int) -> None:
        finish([start(RAY.format(number), folder / "shards", folder / "out", "--ray")])

    runs = {f"{number} workers": partial(workers, number) for number in (1, 2)}
    runs["side by side"] = side_by_side
    if find_spec("ray") is not None:
        runs.update({f"{number} tasks": partial(tasks, number) for number in (1, 2)})
    return runs


def measure(sentences: List[List[str]], turns: int, folder: Path) -> Iterator[Row]:
    half = sentences[: len(sentences) // 2]
    runs = {
        f"{size} {name}": run
        for size, part in (("half", half), ("whole", sentences))
        for name, run in runs_of(part, folder / size).items()
    }
    seconds = by_turns(runs, turns)
    num_tokens = sum(map(len, sentences)) - sum(map(len, half))

    def rate(name: str) -> float:
        # The fastest turns, because a difference of two medians varies more.
        return num_tokens / (min(seconds[f"whole {name}"]) - min(seconds[f"half {name}"]))

    for name, option in (("workers", "--num-workers"), ("tasks", "--ray")):
        if f"half 1 {name}" in seconds:
            two, one, limit = rate(f"2 {name}"), rate(f"1 {name}"), rate("side by side")
            yield Row(
                f"`elmo embed {option}`, two processes against one",
                "tokens/s",
                two,
                one,
                share_of_limit=two / limit,
                aim=AIM,
            )


def main() -> None:
    parser = measuring_parser(__doc__, turns=2)
    add_text(parser, "--text")
    parser.add_argument("--sentences", type=int, default=7000)
    arguments = parser.parse_args()
    sentences = read_sentences(arguments.text, arguments.sentences)
    with tempfile.TemporaryDirectory() as folder:
        report(measure(sentences, arguments.turns, Path(folder)), arguments.output)


if __name__ == "__main__":
    main()
