"""Named entity recognition: the names in a text, and their types."""

from elmo_plugin.tasks.ner.metric import EntityF1
from elmo_plugin.tasks.ner.model import NamedEntityRecognizer
from elmo_plugin.tasks.ner.predictor import NerPredictor
from elmo_plugin.tasks.ner.reader import NerReader

__all__ = ["EntityF1", "NamedEntityRecognizer", "NerPredictor", "NerReader"]
