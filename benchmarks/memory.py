"""
Peak memory of running a biLM on one long line, on a line ten times as long, and on as many tokens
in short lines, without the memory of the loaded biLM.

    python benchmarks/memory.py
    python benchmarks/memory.py --size tiny --tokens 500 --output results.json

Needs Linux and no corpus. Each measurement is a separate process and gives its peak resident
memory, including the resulting vectors. `peer` is AllenNLP's `Elmo`, which is measured on the first
input only.
"""

import multiprocessing
import re
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple, Union

import torch
from bilms import SIZES, load_pair
from common import Row, measuring_parser, report


def resident(what: str, process: Union[int, str] = "self") -> float:
    """
    Memory of a process in MB: `VmRSS` (current resident memory), `VmHWM` (its peak) or `RssAnon`
    (current, without the pages of files).
    """
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(rf"^{what}:\s*(\d+) kB", status, re.MULTILINE)
    return int(found.group(1)) / 1024


@contextmanager
def child_process(
    what: str, run: Callable[..., None], *arguments: Any
) -> Iterator[Tuple[int, Connection]]:
    """
    Calls `run` in a new process, with these arguments and a connection to this process. Yields the
    id of the process and the other end. If the process ends before its last message is received,
    the script ends, too.
    """
    processes = multiprocessing.get_context("spawn")
    child, parent = processes.Pipe()
    process = processes.Process(target=run, args=(*arguments, parent))
    process.start()
    parent.close()
    try:
        yield process.pid, child
    except (EOFError, ConnectionError):
        raise SystemExit(f"{what}: the process ended early. Out of memory?") from None
    finally:
        # After an error the process may wait for a message: without the connection it ends.
        child.close()
        process.join()


def measure_in_process(
    which: str, size: str, sentences: List[List[str]], parent: Connection
) -> None:
    pair = load_pair(size, ["float32"])
    characters = pair.ours["float32"].bilm.characters
    reader = pair.peer if which == "peer" else pair.ours["float32"]
    with torch.inference_mode():
        # Excludes memory that is allocated at the first call.
        reader(characters.batch_ids([["a", "word"]]))
        ids = characters.batch_ids(sentences)
        # Resets the peak.
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        reader(ids)
    parent.send(resident("VmHWM") - before)


def measure_memory(which: str, size: str, sentences: List[List[str]]) -> float:
    """Peak memory of one batch of these sentences, in MB."""
    what = f"{which}, {len(sentences)} lines"
    with child_process(what, measure_in_process, which, size, sentences) as (_, child):
        return child.recv()


def made_up_line(num_tokens: int) -> List[str]:
    """At most 5,000 distinct words of two to five characters, repeated."""
    return [f"w{number * 7 % 5000}" for number in range(num_tokens)]


def measure(size: str, num_tokens: int) -> Iterator[Row]:
    line, longer = made_up_line(num_tokens), made_up_line(10 * num_tokens)
    short = [longer[first : first + 20] for first in range(0, len(longer), 20)]
    batches = {
        f"a line of {len(line):,} tokens": ([line], ("ours", "peer")),
        f"a line of {len(longer):,} tokens": ([longer], ("ours",)),
        f"{len(short):,} lines of 20 tokens": (short, ("ours",)),
    }
    for what, (sentences, readers) in batches.items():
        megabytes = {which: measure_memory(which, size, sentences) for which in readers}
        yield Row(
            f"Memory of reading {what}, {size}", "MB", megabytes["ours"], megabytes.get("peer")
        )


def main() -> None:
    parser = measuring_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--tokens", type=int, default=4000, help="of the line; default 4000")
    arguments = parser.parse_args()
    report(measure(arguments.size, arguments.tokens), arguments.output)


if __name__ == "__main__":
    main()
