"""Classification of pairs of texts: textual entailment (SNLI), and any other labels."""

from elmo_plugin.tasks.snli.model import EntailmentClassifier, Esim
from elmo_plugin.tasks.snli.predictor import PairPredictor, SnliPredictor
from elmo_plugin.tasks.snli.reader import PairReader, SnliReader

__all__ = [
    "EntailmentClassifier",
    "Esim",
    "PairPredictor",
    "PairReader",
    "SnliPredictor",
    "SnliReader",
]
