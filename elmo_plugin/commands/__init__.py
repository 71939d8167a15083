"""Sub-commands of `allennlp`."""

from elmo_plugin.commands.elmo import ElmoCommand
from elmo_plugin.commands.export import ExportCommand
from elmo_plugin.commands.vocabulary import VocabularyCommand

__all__ = ["ElmoCommand", "ExportCommand", "VocabularyCommand"]
