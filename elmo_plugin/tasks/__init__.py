"""The paper's six tasks, and the training of a biLM and of CoVe, a folder each."""

from elmo_plugin.tasks import bilm, coref, ner, snli, squad, srl, sst, translation

__all__ = ["bilm", "coref", "ner", "snli", "squad", "srl", "sst", "translation"]
