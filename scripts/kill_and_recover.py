"""
Kills and recovers training runs, and compares their results with those of uninterrupted runs.

    python scripts/kill_and_recover.py fixtures/experiments/ner_elmo.jsonnet --kills 14
    python scripts/kill_and_recover.py A.jsonnet B.jsonnet --overrides '{"trainer.num_epochs": 4}'

Each experiment is trained once without interruption, then `--kills` times with one: SIGKILL at a
random moment or, every second time, while the training writes a random one of its files; then
`allennlp train --recover` continues. Two runs are equal if they have the same numbers in
metrics.json, except for time and RAM, and bit-identical parameters in best.th and model.tar.gz.
Each run fills its own ELMo cache. The exit code is 1 if a run is not equal.

Processes are forked from this one, which has imported AllenNLP; each has one thread.
"""

import argparse
import json
import math
import os
import random
import re
import shutil
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

os.environ["OMP_NUM_THREADS"] = "1"

import torch  # noqa: E402
from allennlp.commands import main as allennlp  # noqa: E402
from allennlp.common.plugins import import_plugins  # noqa: E402

OF_TIME_OR_RAM = re.compile("duration|memory")


def start(experiment: str, folder: Path, overrides: str, *flags: str) -> int:
    """Starts a training run in a new process, and returns the process id."""
    folder.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        return child
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["ELMO_CACHE"] = str(folder / "cache")
    sys.argv = ["allennlp", "train", experiment, "-s", str(folder / "run"), "-o", overrides, *flags]
    try:
        allennlp()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def finish(child: int, folder: Path) -> None:
    """Waits for a training run to succeed."""
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(f"Expected the run to succeed, but it failed: see {folder / 'log'}.")


def watch(child: int, run: Path, files: float = math.inf, seconds: float = math.inf) -> int:
    """Counts files that a run begins until there are `files`, after `seconds`, or at its end."""
    begun: Set[str] = set()
    begin, flags = time.monotonic(), os.WEXITED | os.WNOHANG | os.WNOWAIT
    while len(begun) < files and time.monotonic() < begin + seconds:
        if os.waitid(os.P_PID, child, flags) is not None:
            break
        time.sleep(0.0002)
        begun.update(path.name for path in run.glob("*.unfinished"))
    return len(begun)


def results(run: Path) -> Dict[str, Any]:
    """The metrics and parameters of a finished run, by file and name."""
    found = {
        f"metrics.json: {name}": value
        for name, value in json.loads((run / "metrics.json").read_text()).items()
        if not OF_TIME_OR_RAM.search(name)
    }
    with tarfile.open(run / "model.tar.gz") as archive:
        archived = torch.load(archive.extractfile("weights.th"), weights_only=True)
    best = torch.load(run / "best.th", weights_only=True)
    for file, state in (("model.tar.gz", archived), ("best.th", best)):
        found.update((f"{file}: {name}", value.numpy().tobytes()) for name, value in state.items())
    return found


def difference(found: Dict[str, Any], expected: Dict[str, Any]) -> Optional[str]:
    """The first name whose values differ, or None."""
    return next((n for n in {**expected, **found} if found.get(n) != expected.get(n)), None)


def check(experiment: str, folder: Path, arguments: argparse.Namespace) -> List[bool]:
    """Whether each killed run equals the whole one; also prints a row of the table for each."""
    begin = time.monotonic()
    child = start(experiment, folder / "whole", arguments.overrides)
    num_files = watch(child, folder / "whole" / "run")
    finish(child, folder / "whole")
    duration = time.monotonic() - begin
    expected, run = results(folder / "whole" / "run"), folder / "killed" / "run"
    draw, equal = random.Random(arguments.seed), []
    while len(equal) < arguments.kills:
        in_write = len(equal) % 2 == 1
        files, seconds = draw.randint(1, num_files), draw.uniform(0, duration)
        shutil.rmtree(folder / "killed", ignore_errors=True)
        child = start(experiment, folder / "killed", arguments.overrides)
        watch(child, run, **({"files": files} if in_write else {"seconds": seconds}))
        os.kill(child, signal.SIGKILL)
        unfinished = [path.name for path in run.glob("*.unfinished")]
        if os.waitpid(child, 0)[1] != signal.SIGKILL or (in_write and not unfinished):
            continue  # SIGKILL came too late: the training or the writing had just ended.
        checkpoints = sorted(path.name for path in run.glob("model_state_*.th")) or ["none"]
        # A run that was killed before it wrote its configuration cannot be recovered.
        flag = "--recover" if (run / "config.json").exists() else "--force"
        finish(start(experiment, folder / "killed", arguments.overrides, flag), folder / "killed")
        other = difference(results(run), expected)
        equal.append(other is None)
        place = f"writing {unfinished[0]}" if unfinished else f"after {seconds:.1f} s"
        cells = f"{Path(experiment).stem:<12} {len(equal):>3}  {place:<45} {checkpoints[-1]:<24}"
        print(cells, other or "equal", flush=True)
    return equal


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT")
    parser.add_argument("--kills", type=int, default=10, help="per experiment")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")
    parser.add_argument("--overrides", default="{}", help="as for `allennlp train`")
    arguments = parser.parse_args()
    import_plugins()
    print(f"{'experiment':<12} {'':>3}  {'killed':<45} {'checkpoint':<24} result")
    equal: List[bool] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, experiment in enumerate(arguments.experiments):
            equal += check(experiment, Path(folder) / str(number), arguments)
    print(f"{sum(equal)} of {len(equal)} killed runs are equal to a run that was not killed.")
    sys.exit(not all(equal))


if __name__ == "__main__":
    main()
