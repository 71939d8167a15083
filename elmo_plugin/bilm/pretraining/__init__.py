"""From text to a trained biLM."""

from elmo_plugin.bilm.pretraining.data_loader import BilmDataLoader
from elmo_plugin.bilm.pretraining.evaluate_before import EvaluateBefore
from elmo_plugin.bilm.pretraining.language_model import LanguageModel
from elmo_plugin.bilm.pretraining.reader import BilmReader
from elmo_plugin.bilm.pretraining.trainer import PretrainingTrainer
from elmo_plugin.bilm.pretraining.vocabulary import (
    SoftmaxVocabulary,
    softmax_counts,
    softmax_ids,
)

__all__ = [
    "BilmDataLoader",
    "BilmReader",
    "EvaluateBefore",
    "LanguageModel",
    "PretrainingTrainer",
    "SoftmaxVocabulary",
    "softmax_counts",
    "softmax_ids",
]
