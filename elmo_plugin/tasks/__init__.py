"""The paper's six tasks, a room each."""

from elmo_plugin.tasks import srl

__all__ = ["srl"]
