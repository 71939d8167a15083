"""Runs a sub-command as AllenNLP starts it."""

import re
import sys
from unittest.mock import patch

import pytest
from allennlp.commands import main

from elmo_plugin.console import explanation


def run(command, *arguments):
    with patch.object(sys, "argv", ["allennlp", command, *map(str, arguments)]):
        with patch("allennlp.commands.import_plugins"):
            main(prog="allennlp")


def refusal(command, *arguments):
    """The one line that the console shows of the error with which it stops."""
    with pytest.raises(Exception) as stopped:
        run(command, *arguments)
    message = explanation(stopped.value)
    assert message is not None and "\n" not in message
    return message


def failure(command, *arguments):
    """The one line with which it stops."""
    with pytest.raises(SystemExit) as stopped:
        run(command, *arguments)
    message = stopped.value.code
    assert isinstance(message, str) and "\n" not in message
    # A sub-command of it may be named, too.
    assert re.match(rf"allennlp {command}( [a-z]+)?: ", message)
    return message
