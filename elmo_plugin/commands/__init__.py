"""Sub-commands of `allennlp`."""

from elmo_plugin.commands.elmo import ElmoCommand
from elmo_plugin.commands.evaluate import evaluate_from_archive
from elmo_plugin.commands.export import ExportCommand
from elmo_plugin.commands.find_learning_rate import find_learning_rate_model
from elmo_plugin.commands.predict import PredictManager
from elmo_plugin.commands.vocabulary import VocabularyCommand

__all__ = [
    "ElmoCommand",
    "ExportCommand",
    "PredictManager",
    "VocabularyCommand",
    "evaluate_from_archive",
    "find_learning_rate_model",
]
