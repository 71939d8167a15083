"""Sentiment of sentences: the Stanford Sentiment Treebank."""

from elmo_plugin.tasks.sst.model import SentimentClassifier
from elmo_plugin.tasks.sst.predictor import SstPredictor
from elmo_plugin.tasks.sst.reader import SstReader

__all__ = ["SentimentClassifier", "SstPredictor", "SstReader"]
