"""What several packages need, and none of them owns; imports nothing else of ours."""

from elmo_plugin.util.unpacking import unpack
from elmo_plugin.util.weights import read_state

__all__ = ["read_state", "unpack"]
