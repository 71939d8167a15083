"""
What the commands of `elmo` and the sub-commands of `allennlp` have in common.

A command is a module with

- `DESCRIPTION` and `EPILOG`, the texts of its `--help`, in which `%(prog)s` is the name by which it
  was called,
- `STOPPED`, the text printed after an interruption,
- `add_arguments(parser)`, which declares its arguments,
- `run(args)`, which does the work and returns the report to print, or an empty string if it has
  printed its results as they were found.

A command that only has sub-commands has `SUBCOMMANDS` instead of the last three: a dictionary from
the name of each to its module and summary.
"""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from functools import partial
from os import PathLike
from types import ModuleType
from typing import Any, Iterable

from elmo_plugin.util.errors import INTERRUPTED, ConfigurationError, is_interruption
from elmo_plugin.util.text_files import DECODING_ERRORS

_USER_ERRORS = (ConfigurationError, ValueError, OSError, ImportError)


def prepare_parser(parser: ArgumentParser, command: ModuleType) -> None:
    """Gives a parser the texts and arguments of a command, and runs the command as its `func`."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.description = command.DESCRIPTION
    parser.epilog = command.EPILOG
    if hasattr(command, "SUBCOMMANDS"):
        parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
        for name, (module, summary) in command.SUBCOMMANDS.items():
            prepare_parser(parsers.add_parser(name, help=summary), module)
        return
    command.add_arguments(parser)
    parser.set_defaults(func=partial(_run, command, parser.prog))


def add_decoding_errors(parser: ArgumentParser) -> None:
    """The option `--decoding-errors` of the commands that read text."""
    parser.add_argument(
        "--decoding-errors",
        choices=DECODING_ERRORS,
        default="strict",
        help="bytes that are not UTF-8: stop and name their place, or read each as U+FFFD "
        "(default: strict)",
    )


def add_ray_arguments(parser: ArgumentParser, purpose: str) -> Any:
    """`--ray` and `--cpus`, in a group that is returned."""
    group = parser.add_argument_group("Ray")
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help=f"{purpose} of Ray, on a cluster or (without ADDRESS) on this machine",
    )
    group.add_argument(
        "--cpus", type=float, help="CPU cores reserved for each Ray task (default: 1)"
    )
    return group


def check_ray_arguments(args: Namespace) -> None:
    """Refuses options of Ray's tasks without `--ray`, and `--num-workers` with it."""
    if args.ray is not None and args.num_workers:
        raise ConfigurationError(
            "--num-workers is for this machine. With --ray, --cpus is the number of CPUs of a task."
        )
    for option in ("cpus", "gpus"):
        if args.ray is None and getattr(args, option, None) is not None:
            raise ConfigurationError(
                f"--{option} is for the tasks of --ray. Leave it out, or add --ray."
            )


def check_not_input(output: PathLike, shards: Iterable[Any]) -> None:
    """`ConfigurationError` if an output is one of the files that a command reads."""
    # A shard at a URL is no local file.
    if os.path.exists(output):
        local = filter(os.path.exists, (str(shard).removeprefix("file://") for shard in shards))
        if any(os.path.samefile(shard, output) for shard in local):
            raise ConfigurationError(f"{output} is part of the input; name another output.")


def say(line: str) -> None:
    """Prints a line to standard error, where progress is shown."""
    print(line, file=sys.stderr, flush=True)


def _run(command: ModuleType, program: str, args: Namespace) -> None:
    """Ends with one sentence and exit code 1 after a user's error, 130 after an interruption."""
    # SIGTERM raises KeyboardInterrupt, too.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if report := command.run(args):
            print(report)
        # A closed pipe raises an error here, not when the interpreter ends.
        sys.stdout.flush()
    except BrokenPipeError:
        # The program that reads the output, such as `head`, has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except BaseException as error:
        if is_interruption(error):
            say(f"{program}: {command.STOPPED}")
            sys.exit(INTERRUPTED)
        if os.environ.get("ALLENNLP_DEBUG") or not isinstance(error, _USER_ERRORS):
            raise
        sys.exit(f"{program}: {error}")
    finally:
        signal.signal(signal.SIGTERM, before)
