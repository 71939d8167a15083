"""The command `elmo`."""

import argparse
import os
import signal
import subprocess
import sys

import pytest
from allennlp.commands import ArgumentParserWithDefaults
from allennlp.commands.subcommand import Subcommand

from elmo_plugin import __version__
from elmo_plugin.commands import subcommands
from elmo_plugin.commands.main import COMMANDS, main
from elmo_plugin.util.errors import ConfigurationError
from tests.guide import PROJECT


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, summary in COMMANDS.items():
        assert name in shown and summary in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_that_names_it(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    assert f"example:\n    elmo {name} " in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"{__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["translate"], ["embed"]])
def test_wrong_arguments_end_with_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: elmo" in capsys.readouterr().err


def test_a_wrong_file_ends_with_one_sentence_and_exit_code_1(tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main(["vocabulary", str(tmp_path / "none"), str(tmp_path / "out")])
    # Printed by Python, which then exits with code 1.
    assert isinstance(stopped.value.code, str) and "\n" not in stopped.value.code
    assert stopped.value.code.startswith("elmo vocabulary: ")


def test_allennlp_debug_shows_the_traceback(tmp_path, monkeypatch):
    monkeypatch.setenv("ALLENNLP_DEBUG", "1")
    with pytest.raises(ConfigurationError):
        main(["vocabulary", str(tmp_path / "none"), str(tmp_path / "out")])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_it_with_one_sentence(tmp_path, number):
    # Waits for someone who writes to the pipe.
    os.mkfifo(tmp_path / "pipe")
    start = "from elmo_plugin.commands.main import main; main()"
    command = [sys.executable, "-c", start, "vocabulary", tmp_path / "pipe", tmp_path / "out"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    # Opened only once the command reads.
    with open(tmp_path / "pipe", "w"):
        process.send_signal(number)
        _, shown = process.communicate()
    assert process.returncode == 130
    assert shown == "elmo vocabulary: stopped, nothing was written.\n"


def subcommand(name):
    registered = subcommands._OTHER_NAMES.get(name, f"elmo-{name}")
    of_allennlp = ArgumentParserWithDefaults().add_subparsers()
    return Subcommand.by_name(registered)().add_subparser(of_allennlp)


def parsers(parser):
    """A parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


@pytest.mark.parametrize("name", subcommands._SUMMARIES)
def test_a_help_names_each_default_once_and_no_path_of_this_machine(name):
    for parser in parsers(subcommand(name)):
        shown = parser.format_help()
        assert str(PROJECT) not in shown and "(default = " not in shown
        for action in parser._actions:
            if action.default not in (None, False, [], argparse.SUPPRESS):
                assert "default" in action.help, action.option_strings


@pytest.mark.parametrize("name", subcommands._SUMMARIES)
def test_an_option_with_several_values_can_be_given_twice(name):
    for parser in parsers(subcommand(name)):
        for action in parser._actions:
            if action.option_strings and action.nargs == "+":
                args = argparse.Namespace(**{action.dest: action.default})
                action(parser, args, ["A", "B"])
                action(parser, args, ["C"])
                assert getattr(args, action.dest) == [*(action.default or []), "A", "B", "C"]
