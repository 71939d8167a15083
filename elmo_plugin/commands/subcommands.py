"""
The commands of `elmo` as sub-commands of `allennlp`: `elmo export` is `allennlp elmo-export`. Also
sub-commands of `allennlp` only.
"""

import argparse

from allennlp.commands.subcommand import Subcommand
from overrides import overrides

from elmo_plugin.commands.command import prepare_parser
from elmo_plugin.commands.main import COMMANDS

# Not commands of `elmo`, because they need AllenNLP.
_ALLENNLP_COMMANDS = {"study": "train the experiments of a study, and compare them in tables"}
# `allennlp elmo` was the name of this command in AllenNLP before 1.0.
_OTHER_NAMES = {"embed": "elmo"}
_SUMMARIES = {**COMMANDS, **_ALLENNLP_COMMANDS}


class _CoreCommand(Subcommand):
    """A sub-command that runs the command `command`, see `_SUMMARIES`."""

    command: str
    # Leaves out --include-package, which none of these commands uses.
    requires_plugins = False

    @overrides
    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        # AllenNLP's class would add each default to its help again.
        before, parser._parser_class = parser._parser_class, argparse.ArgumentParser
        try:
            summary = _SUMMARIES[self.command]
            subparser = parser.add_parser(self.name, help=summary, description=summary)
        finally:
            parser._parser_class = before
        prepare_parser(subparser, self.command)
        return subparser


for _command in _SUMMARIES:
    _name = _OTHER_NAMES.get(_command, f"elmo-{_command}")
    Subcommand.register(_name)(type(f"_Command_{_command}", (_CoreCommand,), {"command": _command}))
