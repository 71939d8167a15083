"""
What the commands of `elmo` and the sub-commands of `allennlp` have in common.

A command, or one of `STEPS`, is a module with

- a docstring, the text of its `--help`, whose end, from `example:` on, stands below the arguments;
  there, `%(prog)s` is the name by which the command was called,
- `Options`, a dataclass of its arguments,
- `run(args)`, which gets these options, does the work and returns the report to print, or an empty
  string if it has printed its results as they were found,
- perhaps `STOPPED`, the text printed after an interruption or on a full disk.
"""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import Any, Dict, Iterable, Optional

from elmo_plugin.commands.arguments import add_arguments, read_options
from elmo_plugin.util.errors import (
    INTERRUPTED,
    ConfigurationError,
    is_interruption,
    jsonnet_message,
)
from elmo_plugin.util.files import NO_SPACE

#: The steps of commands that have several, with summaries: `elmo probe pos` is `probe_pos.py`.
STEPS: Dict[str, Dict[str, str]] = {
    "neighbours": {
        "build": "write the vectors of a text into a folder",
        "query": "find the nearest contexts of a word in a sentence",
    },
    "probe": {
        "pos": "parts of speech, by a linear classifier on each layer",
        "wsd": "word senses, by the nearest mean vector of a sense",
    },
}
_USER_ERRORS = (ConfigurationError, ValueError, OSError, ImportError)


def prepare_parser(parser: ArgumentParser, name: str) -> None:
    """Gives a parser the help, the arguments and the `func` of a command."""
    parser.formatter_class = RawDescriptionHelpFormatter
    if name in STEPS:
        parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
        for each, summary in STEPS[name].items():
            prepare_parser(parsers.add_parser(each, help=summary), f"{name}_{each}")
        parser.epilog = f"example:\n    %(prog)s {each} --help"
        return
    command = import_module(f"elmo_plugin.commands.{name.replace('-', '_')}")
    parser.description, example, rest = (command.__doc__ or "").partition("\nexample:\n")
    parser.epilog = example + rest
    add_arguments(parser, command.Options)
    parser.set_defaults(func=partial(_run, command, parser.prog))


def check_not_input(output: PathLike, shards: Iterable[Any]) -> None:
    """Raises `ConfigurationError` if an output is one of the files that a command reads."""
    # A shard at a URL is no local file.
    if os.path.exists(output):
        local = filter(os.path.exists, (str(shard).removeprefix("file://") for shard in shards))
        if any(os.path.samefile(shard, output) for shard in local):
            raise ConfigurationError(f"{output} is part of the input; name another output.")


def say(line: str) -> None:
    """Prints a line to standard error, where progress is shown."""
    print(line, file=sys.stderr, flush=True)


def _run(command: ModuleType, program: str, args: Namespace) -> None:
    """A user's error ends it with one sentence and exit code 1, an interruption with 130."""
    stopped = getattr(command, "STOPPED", "stopped.")
    # SIGTERM raises KeyboardInterrupt, too.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if report := command.run(read_options(command.Options, args)):
            print(report)
        # A closed pipe raises an error here, not when the interpreter ends.
        sys.stdout.flush()
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except BaseException as error:
        if is_interruption(error):
            say(f"{program}: {stopped}")
            sys.exit(INTERRUPTED)
        sentence = _sentence(error, stopped)
        if os.environ.get("ALLENNLP_DEBUG") or sentence is None:
            raise
        sys.exit(f"{program}: {sentence}")
    finally:
        signal.signal(signal.SIGTERM, before)


def _sentence(error: BaseException, stopped: str) -> Optional[str]:
    """What a user reads of an error; `None` for a bug."""
    # By name: only the commands that need torch import it.
    if type(error).__name__ == "OutOfMemoryError":
        return (
            "the GPU has too little memory. Lower --batch-size if the command has it, or leave out "
            "--device to run on the CPU."
        )
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        return (
            f"no space left to write {error.filename or 'the output'} ({error.strerror}): {stopped}"
        )
    return str(error) if isinstance(error, _USER_ERRORS) else jsonnet_message(str(error))
