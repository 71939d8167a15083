"""
What the commands of `elmo` and the sub-commands of `allennlp` have in common.

A command is a module with

- a docstring, the text of its `--help`, whose end, from `example:` on, stands below the arguments;
  there, `%(prog)s` is the name by which the command was called,
- `Options`, a dataclass of its arguments,
- `run(args)`, which gets these options, does the work and returns the report to print, or an empty
  string if it has printed its results as they were found,
- perhaps `STOPPED`, the text printed after an interruption.

A command that only has sub-commands has `SUBCOMMANDS` instead of the last three: a dictionary from
the name of each to its summary.
"""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import Any, Iterable

from elmo_plugin.commands.arguments import add_arguments, read_options
from elmo_plugin.util.errors import INTERRUPTED, ConfigurationError, is_interruption

_USER_ERRORS = (ConfigurationError, ValueError, OSError, ImportError)


def prepare_parser(parser: ArgumentParser, name: str) -> None:
    """Gives a parser the help, the arguments and the `func` of a command."""
    command = import_module(f"elmo_plugin.commands.{name.replace('-', '_')}")
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.description, example, rest = (command.__doc__ or "").partition("\nexample:\n")
    parser.epilog = example + rest
    if hasattr(command, "SUBCOMMANDS"):
        parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
        for each, summary in command.SUBCOMMANDS.items():
            prepare_parser(parsers.add_parser(each, help=summary), f"{name}_{each}")
        return
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
            say(f"{program}: {getattr(command, 'STOPPED', 'stopped.')}")
            sys.exit(INTERRUPTED)
        if os.environ.get("ALLENNLP_DEBUG") or not isinstance(error, _USER_ERRORS):
            raise
        sys.exit(f"{program}: {error}")
    finally:
        signal.signal(signal.SIGTERM, before)
