"""What several packages need, and none of them owns; imports nothing else of ours."""

from elmo_plugin.util.archives import load_archive
from elmo_plugin.util.unpacking import unpacked
from elmo_plugin.util.weights import read_state

__all__ = ["load_archive", "read_state", "unpacked"]
