"""The paper's six tasks and the training of a biLM, a folder each."""

from elmo_plugin.tasks import bilm, coref, ner, snli, squad, srl, sst

__all__ = ["bilm", "coref", "ner", "snli", "squad", "srl", "sst"]
