"""Coreference: which words of a document speak of the same thing?"""

from elmo_plugin.tasks.coref.metric import CorefScores
from elmo_plugin.tasks.coref.model import Coref
from elmo_plugin.tasks.coref.predictor import CorefPredictor
from elmo_plugin.tasks.coref.reader import CorefReader

__all__ = ["Coref", "CorefPredictor", "CorefReader", "CorefScores"]
