"""
The commands of `elmo` as sub-commands of `allennlp`: `elmo export` is `allennlp elmo-export`.
"""

import argparse

from allennlp.commands.subcommand import Subcommand
from overrides import overrides

from elmo_plugin.commands.command import prepare_parser
from elmo_plugin.commands.main import COMMANDS

# `allennlp elmo` was the name of this command in AllenNLP before 1.0.
_OLD_NAMES = {"embed": ["elmo"]}


class _CoreCommand(Subcommand):
    """A sub-command that runs the command `command`, see `COMMANDS`."""

    command: str
    # Leaves out --include-package, which none of these commands uses.
    requires_plugins = False

    @overrides
    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        old, summary = _OLD_NAMES.get(self.command, []), COMMANDS[self.command]
        subparser = parser.add_parser(self.name, aliases=old, help=summary, description=summary)
        # AllenNLP's class would add each default to its help again.
        subparser.__class__ = argparse.ArgumentParser
        prepare_parser(subparser, self.command)
        return subparser


for _command in COMMANDS:
    _class = type(f"_Command_{_command}", (_CoreCommand,), {"command": _command})
    Subcommand.register(f"elmo-{_command}")(_class)
