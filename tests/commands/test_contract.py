"""What all commands have in common, as commands of `elmo` and as sub-commands of `allennlp`."""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import List, Optional
from unittest.mock import patch

import pytest
from allennlp.commands import ArgumentParserWithDefaults
from allennlp.commands.subcommand import Subcommand

from elmo_plugin import __version__
from elmo_plugin.commands.arguments import (
    EXACTLY_ONE,
    Device,
    add_arguments,
    flag,
    option,
    positional,
    read_options,
)
from elmo_plugin.commands.main import COMMANDS, main
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.late_imports import late_imports
from tests.commands import running
from tests.guide import PROJECT

# Commands that do the work, with arguments that can be parsed.
LINES = {
    "train": "ner train.conll -s out",
    "predict": "ner text",
    "evaluate": "ner corpus",
    "embed": "text out --all",
    "export": "archive out",
    "import": "checkpoints out",
    "layer-weights": "archive",
    "models": "",
    "pack": "archive out",
    "probe pos": "",
    "probe wsd": "",
    "report": "out",
    "serve": "archive",
    "score": "text",
    "vocabulary": "text out",
    "neighbours build": "text out",
    "neighbours query": "out sentence",
    "experiments": "out",
    "study": "study -s out",
}


def call(door, name, *arguments):
    if door == "elmo":
        return main([*name.split(), *arguments])
    return running.run(*f"elmo-{name}".split(), *arguments)


def program(door, name):
    return f"elmo {name}" if door == "elmo" else f"allennlp elmo-{name}"


NAMES = dict.fromkeys([*COMMANDS, *LINES])
BOTH_DOORS = [(door, name) for door in ("allennlp", "elmo") for name in NAMES]
WORKING = [(door, name) for door, name in BOTH_DOORS if name in LINES]


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, summary in COMMANDS.items():
        assert name in shown and summary in shown


def test_without_a_command_the_help_is_shown(capsys):
    shown = []
    for arguments in ([], ["--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        shown.append(capsys.readouterr())
    assert shown[0] == shown[1] and shown[0].out.startswith("usage: elmo ")


def test_help_imports_neither_torch_nor_allennlp():
    script = """
import sys
from elmo_plugin.commands.main import main
for name in sys.argv[1:]:
    sys.argv = ["elmo", *name.split(), "--help"]
    try:
        main()
    except SystemExit as stopped:
        print("code", stopped.code)
print({"allennlp", "numpy", "torch"} & sys.modules.keys())
"""
    command = [sys.executable, "-c", script, *NAMES]
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert shown.count("\ncode 0\n") == len(NAMES) == shown.count("\nexample:\n")
    assert shown.endswith("\nset()\n")


def test_help_after_two_dashes_is_an_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["elmo", "experiments", "--", "--help"])
    monkeypatch.setattr("elmo_plugin.commands.experiments.run", lambda args: f"to {args.out_dir}")
    with patch("elmo_plugin.commands.main.late_imports", wraps=late_imports) as late:
        main()
    late.assert_called_once_with((), ("elmo_plugin.",))
    assert capsys.readouterr().out == "to --help\n"


def test_the_first_name_of_embed_is_still_known(capsys):
    with pytest.raises(SystemExit) as stopped:
        running.run("elmo", "--help")
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("usage: allennlp elmo-embed ")


@pytest.mark.parametrize("door, name", BOTH_DOORS)
def test_the_help_of_a_command_has_an_example_that_names_it(door, name, capsys):
    with pytest.raises(SystemExit) as stopped:
        call(door, name, "--help")
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert f"\nexample:\n    {program(door, name)} " in shown
    # No format is left over; "95 %" is text.
    assert "%" not in re.sub(r"\d\s+%", "", shown)


@pytest.mark.parametrize("door, name", WORKING)
def test_an_interruption_is_one_sentence_and_exit_code_130(door, name, capsys, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    module = re.sub("[ -]", "_", name)
    monkeypatch.setattr(import_module(f"elmo_plugin.commands.{module}"), "run", interrupted)
    with pytest.raises(SystemExit) as stopped:
        call(door, name, *shlex.split(LINES[name]))
    assert stopped.value.code == 130
    assert capsys.readouterr().err.startswith(f"{program(door, name)}: stopped")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_interrupt(tmp_path, number):
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
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    "error, is_users",
    [
        (ConfigurationError("why"), True),
        (ValueError("why"), True),
        (OSError("why"), True),
        (ImportError("why"), True),
        (RuntimeError("why"), False),
        (KeyError("why"), False),
    ],
)
def test_a_user_s_error_is_one_sentence_and_a_bug_is_not(monkeypatch, error, is_users):
    def failing(args):
        raise error

    monkeypatch.setattr("elmo_plugin.commands.vocabulary.run", failing)
    with pytest.raises(SystemExit if is_users else type(error)) as stopped:
        main(["vocabulary", "text", "out"])
    # A sentence is printed by Python, which then exits with code 1.
    assert not is_users or stopped.value.code == "elmo vocabulary: why"
    monkeypatch.setenv("ALLENNLP_DEBUG", "1")
    with pytest.raises(type(error)):
        main(["vocabulary", "text", "out"])


@pytest.mark.parametrize(
    "line, message",
    [
        ("translate", "invalid choice: 'translate'"),
        ("probe", "required: COMMAND"),
        ("embed", "required: INPUT, OUTPUT"),
        ("embed a b", "one of the arguments --all --top --average --layers is required"),
        ("embed a b --all --top", "--top: not allowed with argument --all"),
        ("embed a b --all --batch-size 0", "expected a whole number above 0, found 0"),
        ("embed a b --all --batch-size -1", "expected a whole number above 0, found -1"),
        ("embed a b --all --batch-size many", "expected a whole number above 0, found many"),
        ("embed a b --all --batch-size 1.5", "expected a whole number above 0, found 1.5"),
        ("embed a b --all --num-workers 2 --ray", "--ray: not allowed with argument --num-workers"),
        ("embed text out --all --cpus x", "invalid float value: 'x'"),
        ("serve --port 65536", "expected a whole number from 0 to 65535, found 65536"),
    ],
)
def test_arguments_that_cannot_be_parsed_end_with_exit_code_2(line, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(shlex.split(line))
    shown = capsys.readouterr().err
    assert stopped.value.code == 2 and "usage: elmo" in shown and message in shown


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"{__version__}\n"


def parsers(parser):
    """A parser and those of its sub-commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_default_is_in_the_help_and_lists_can_be_continued(name):
    registered = program("allennlp", name).split()[1]
    of_allennlp = ArgumentParserWithDefaults().add_subparsers()
    for parser in parsers(Subcommand.by_name(registered)().add_subparser(of_allennlp)):
        shown = parser.format_help()
        assert str(PROJECT) not in shown and "(default = " not in shown
        for action in parser._actions:
            if action.default not in (None, False, argparse.SUPPRESS):
                assert "default" in action.help, action.option_strings
            if action.option_strings and action.nargs == "+":
                args = argparse.Namespace(**{action.dest: None})
                action(parser, args, ["A", "B"])
                action(parser, args, ["C"])
                assert getattr(args, action.dest) == ["A", "B", "C"]


@dataclass(kw_only=True)
class Inner:
    depth: int = option("a number", 3)


@dataclass(kw_only=True)
class Outer(Inner):
    text: List[str] = positional("TEXT", "what to read")
    out: Path = positional("OUT", "a file")
    fast: bool = flag("be quick", EXACTLY_ONE)
    slow: bool = flag("take your time", EXACTLY_ONE)
    rate: Optional[float] = option("a share")
    layer_names: Optional[List[str]] = option("names", short="-l")


def test_a_dataclass_declares_the_arguments_and_holds_what_was_parsed(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    parser = argparse.ArgumentParser()
    add_arguments(parser, Outer)

    def parsed(line):
        return read_options(Outer, parser.parse_args(shlex.split(line)))

    given = {"text": ["a", "b"], "out": Path("/home/ada/c"), "rate": None, "layer_names": None}
    assert parsed("a b ~/c --fast") == Outer(**given, fast=True)
    given |= {"rate": 0.5, "layer_names": ["x", "y", "z"], "depth": 4}
    line = "a b ~/c --slow --rate .5 -l x y --depth 4 --layer-names z"
    assert parsed(line) == Outer(**given, slow=True)


@dataclass(kw_only=True)
class OnDevice:
    device: Device = Device.option()


@pytest.mark.parametrize(
    "line, device, number",
    [
        ("", "cpu", -1),
        ("--device cpu", "cpu", -1),
        ("--device cuda", "cuda:0", 0),
        ("--device cuda:2", "cuda:2", 2),
        ("--cuda-device -1", "cpu", -1),
        ("--cuda-device 1", "cuda:1", 1),
        ("--device mps", "mps", None),
        ("--device gpu", None, None),
    ],
)
def test_a_device_by_its_name_or_number(line, device, number):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, OnDevice)
    if device is None:
        with pytest.raises(argparse.ArgumentError, match="expected cpu, cuda, cuda:1 or mps"):
            parser.parse_args(line.split())
        return
    found = read_options(OnDevice, parser.parse_args(line.split())).device
    assert found == device and (number is None or found.number == number)
