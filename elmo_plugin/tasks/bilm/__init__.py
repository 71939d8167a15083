"""The training of a biLM with AllenNLP: reader, model, data loader and trainer."""

from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.tasks.bilm.reader import BilmReader
from elmo_plugin.tasks.bilm.trainer import EvaluateBefore, PretrainingTrainer
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary

__all__ = [
    "BilmDataLoader",
    "BilmModel",
    "BilmReader",
    "EvaluateBefore",
    "PretrainingTrainer",
    "SoftmaxVocabulary",
]
