"""The paper's six tasks, a room each."""

from elmo_plugin.tasks import coref, ner, snli, squad, srl, sst

__all__ = ["coref", "ner", "snli", "squad", "srl", "sst"]
