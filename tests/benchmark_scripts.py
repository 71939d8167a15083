"""Imports the benchmarks as they import each other. An installed package owns `benchmarks`."""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
MEASURING = (
    "cache_stores", "embed", "encoders", "exported", "large_pages", "latency", "layers", "memory",
    "neighbours", "pretrain", "probes", "scale", "score", "serve", "srl_encoder", "startup",
    "tasks", "workers",
)  # fmt: skip

sys.path.insert(0, str(FOLDER))
modules = {
    name: importlib.import_module(name)
    for name in (
        *MEASURING,
        "bilms",
        "common",
        "fast_peers",
        "peer_parts",
        "peer_scores",
        "table",
        "task_peers",
        "task_steps",
        "time_shares",
    )
}
sys.path.remove(str(FOLDER))


def make_row(name="row", ours=6.0, peer=3.0, **others):
    """Twice as fast as its peer, on a machine of its own."""
    given = {"machine": "a machine", "versions": {"python": "3", "torch": "2"}}
    given.update({"date": "2020-02-02", **others})
    return modules["common"].Row(name, "tokens/s", ours, peer, **given)
