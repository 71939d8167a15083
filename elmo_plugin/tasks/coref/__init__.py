"""Coreference: the mentions of a document that refer to the same entity."""

from elmo_plugin.tasks.coref.metric import CorefScores
from elmo_plugin.tasks.coref.model import CoreferenceResolver
from elmo_plugin.tasks.coref.predictor import CorefPredictor
from elmo_plugin.tasks.coref.reader import CorefReader

__all__ = ["CorefPredictor", "CorefReader", "CorefScores", "CoreferenceResolver"]
