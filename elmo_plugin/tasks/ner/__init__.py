"""Tagging of words: named entities, and any other tags."""

from elmo_plugin.tasks.ner.metric import EntityF1, TagAccuracy
from elmo_plugin.tasks.ner.model import NamedEntityRecognizer, Tagger
from elmo_plugin.tasks.ner.predictor import NerPredictor, TagPredictor
from elmo_plugin.tasks.ner.reader import TagReader

__all__ = [
    "EntityF1",
    "NamedEntityRecognizer",
    "NerPredictor",
    "TagAccuracy",
    "TagPredictor",
    "TagReader",
    "Tagger",
]
