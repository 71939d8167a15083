"""Textual entailment: does one sentence follow from another?"""

from elmo_plugin.tasks.snli.model import Esim
from elmo_plugin.tasks.snli.predictor import SnliPredictor
from elmo_plugin.tasks.snli.reader import SnliReader

__all__ = ["Esim", "SnliPredictor", "SnliReader"]
