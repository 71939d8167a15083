"""Translation with attention, which trains the encoder of CoVe."""

from elmo_plugin.tasks.translation.model import TranslationModel
from elmo_plugin.tasks.translation.predictor import TranslationPredictor
from elmo_plugin.tasks.translation.reader import TranslationReader

__all__ = ["TranslationModel", "TranslationPredictor", "TranslationReader"]
