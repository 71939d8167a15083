"""The paper's six tasks, a room each."""

from elmo_plugin.tasks import ner, snli, srl, sst

__all__ = ["ner", "snli", "srl", "sst"]
