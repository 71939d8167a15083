"""
The arguments of a command, declared once: `argparse` gets them from the fields of a dataclass.

The annotation of a field says what `argparse` has to know: a `bool` is a flag, a `List` takes one
or more values (an option can then be given several times), `~` in a `Path` is expanded, a
`PositiveInt` is above 0. Commands share arguments by inheriting from a dataclass.
"""

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import MISSING, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Dict, NewType, Optional, Type, TypeVar, Union, get_args, get_origin

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.text_files import DECODING_ERRORS

T = TypeVar("T")
PositiveInt = NewType("PositiveInt", int)
#: Groups of options that exclude each other.
EXACTLY_ONE, AT_MOST_ONE = "exactly one", "at most one"


def positional(metavar: str, help: str, **settings: Any) -> Any:
    """A field for a positional argument. `settings` are passed to `add_argument`."""
    return field(metadata={"metavar": metavar, "help": help, **settings})


def option(help: str, default: Any = None, group: str = "", **settings: Any) -> Any:
    """
    A field for an option `--like-its-name`. The default is added to `help`, unless it says it.
    `group` is `EXACTLY_ONE` or `AT_MOST_ONE`. `settings` are passed to `add_argument`, except
    `short`, another name such as `-s`.
    """
    return field(default=default, metadata={"help": help, "group": group, **settings})


def flag(help: str, group: str = "") -> Any:
    """A field for an option that is given or not."""
    return option(help, False, group)


def add_arguments(parser: ArgumentParser, options: type) -> None:
    """Declares the fields of a dataclass to a parser, those that it inherits last."""
    groups: Dict[str, Any] = {"": parser}
    for each in sorted(fields(options), key=lambda each: each.name not in options.__annotations__):
        names, settings = [each.name], {**_of_annotation(each.type), **each.metadata}
        if each.default is not MISSING:
            names = [*settings.pop("short", "").split(), f"--{each.name.replace('_', '-')}"]
            names.sort(key=len)
            settings.update(default=each.default, dest=each.name)
            if each.default not in (None, False) and "default" not in settings["help"]:
                settings["help"] += f" (default: {each.default})"
            if settings.get("nargs") == "+":
                settings["action"] = "extend"
        group = settings.pop("group", "")
        if group not in groups:
            is_required = group == EXACTLY_ONE
            groups[group] = parser.add_mutually_exclusive_group(required=is_required)
        required = settings.pop("required", None)
        action = groups[group].add_argument(*names, **settings)
        # A positional argument may be left out, too.
        action.required = action.required if required is None else required


def read_options(options: Type[T], args: Namespace) -> T:
    """The parsed arguments, as the dataclass that `add_arguments` declared."""
    names = [each.name for each in fields(options)]  # type: ignore[arg-type]
    return options(**{name: getattr(args, name) for name in names})


def _of_annotation(hint: Any) -> Dict[str, Any]:
    if hint is bool:
        return {"action": "store_true"}
    if get_origin(hint) is Union:
        return _of_annotation(get_args(hint)[0])
    if get_origin(hint) is list:
        return {**_of_annotation(get_args(hint)[0]), "nargs": "+"}
    name = {"metavar": "N"} if hint in (int, PositiveInt) else {}
    return {**name, "type": {Path: expanded, PositiveInt: positive_number}.get(hint, hint)}


def whole_number(text: str, allowed: range, expected: str) -> int:
    """Parses a number in `allowed`; for the `type` of an option."""
    if not text.isdecimal() or int(text) not in allowed:
        raise ArgumentTypeError(f"expected a whole number {expected}, found {text}")
    return int(text)


positive_number = partial(whole_number, allowed=range(1, 2**63), expected="above 0")


class Device(str):
    """`cpu`, `cuda:N` or `mps`. Also parses AllenNLP's numbers: of a GPU, or -1 for the CPU."""

    def __new__(cls, text: str) -> "Device":
        name = {"-1": "cpu", "cuda": "cuda:0"}.get(text, text)
        name = f"cuda:{name}" if name.isdecimal() else name
        if not re.fullmatch(r"cpu|mps|cuda:[0-9]+", name):
            raise ArgumentTypeError(f"expected cpu, cuda, cuda:1 or mps, found {text}")
        return super().__new__(cls, name)

    @staticmethod
    def option(default: Optional[str] = "cpu") -> Any:
        help = "cpu, cuda, cuda:1 or, for a biLM alone, mps"
        help += "" if default else " (default: a GPU if there is one)"
        return option(help, default, short="--cuda-device")

    @property
    def number(self) -> int:
        """AllenNLP's number. Raises `ConfigurationError` for `mps`, which has none."""
        if self == "mps":
            raise ConfigurationError(
                "--device mps: trained models run on cpu and cuda. Leave it out to run on the CPU."
            )
        return -1 if self == "cpu" else int(self.removeprefix("cuda:"))


def decoding_errors_option() -> Any:
    return option(
        "bytes that are not UTF-8: stop and name their place, or read each as U+FFFD",
        "strict",
        choices=DECODING_ERRORS,
    )


def tokenize_option(help: str) -> Any:
    return option(
        f"{help} by spaCy's rules for LANG, a code such as de, fr, zh; en by the rules of the Penn "
        "Treebank (default: it is tokenised)",
        metavar="LANG",
    )
