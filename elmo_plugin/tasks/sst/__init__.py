"""Classification of texts: sentiment (the Stanford Sentiment Treebank), and any other labels."""

from elmo_plugin.tasks.sst.model import SentimentClassifier, TextClassifier
from elmo_plugin.tasks.sst.predictor import SstPredictor, TextPredictor
from elmo_plugin.tasks.sst.reader import TextReader

__all__ = [
    "SentimentClassifier",
    "SstPredictor",
    "TextClassifier",
    "TextPredictor",
    "TextReader",
]
