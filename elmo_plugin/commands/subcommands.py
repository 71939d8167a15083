"""The commands of `elmo` as sub-commands of `allennlp`."""

import argparse
from importlib import import_module

from allennlp.commands.subcommand import Subcommand
from overrides import overrides

from elmo_plugin.commands.command import prepare_parser
from elmo_plugin.commands.main import COMMANDS

__all__ = [
    "EmbedCommand",
    "ExperimentsCommand",
    "ExportCommand",
    "NeighboursCommand",
    "VocabularyCommand",
]


class _CoreCommand(Subcommand):
    """A command of `elmo` by its name there, `command`."""

    command: str
    # Leaves out --include-package, which none of these commands uses.
    requires_plugins = False

    @overrides
    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(self.name, help=COMMANDS[self.command])
        prepare_parser(subparser, import_module(f"elmo_plugin.commands.{self.command}"))
        return subparser


# As it was called until AllenNLP 1.0.
@Subcommand.register("elmo")
class EmbedCommand(_CoreCommand):
    command = "embed"


@Subcommand.register("elmo-export")
class ExportCommand(_CoreCommand):
    command = "export"


@Subcommand.register("elmo-vocabulary")
class VocabularyCommand(_CoreCommand):
    command = "vocabulary"


@Subcommand.register("elmo-neighbours")
class NeighboursCommand(_CoreCommand):
    command = "neighbours"


@Subcommand.register("elmo-experiments")
class ExperimentsCommand(_CoreCommand):
    command = "experiments"
