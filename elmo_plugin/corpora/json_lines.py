"""Reads files with one JSON object per line."""

import json
import os
from typing import Any, Dict, Iterator, Tuple, Union

from elmo_plugin.util.text_files import numbered_lines


def read_objects(path: Union[str, os.PathLike]) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """
    Yields the `file:line` and the object of each line, see `numbered_lines`. Empty lines are
    skipped.

    # Raises

    `ValueError`
        If a line is not a JSON object or not UTF-8, or the file holds no objects.
    """
    is_empty = True
    # Strings may contain Unicode's other line separators.
    for number, line in numbered_lines(path, newline="\n"):
        if line.strip():
            is_empty = False
            location = f"{path}:{number}"
            yield location, parse_object(line, location)
    if is_empty:
        raise ValueError(f"{path}: the file is empty; expected one JSON object per line.")


def parse_object(line: str, location: str, example: str = "") -> Dict[str, Any]:
    """
    # Parameters

    line : `str`
    location : `str`
        The location of the line, for error messages.
    example : `str`, optional (default = `""`)
        A correct line, for error messages.

    # Raises

    `ValueError`
        If the line is not one JSON object.
    """
    like = f" like {example}" if example else ""
    try:
        found = json.loads(line.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{location}: expected a JSON object{like}, found {excerpt(line)!r} ({error}). Each "
            "line must hold one whole object: was the file cut off, or is it in another format?"
        ) from error
    if not isinstance(found, dict):
        raise ValueError(f"{location}: expected a JSON object{like}, found {excerpt(line)!r}.")
    if "\\ud" in line.lower():
        check_surrogates(found, location)
    return found


def check_surrogates(found: Any, location: str) -> None:
    """
    Refuses JSON whose strings contain a lone surrogate (half of an escaped character), since such
    strings cannot be encoded as UTF-8.

    # Raises

    `ValueError`
    """
    try:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.start + 1].encode("ascii", "backslashreplace")
        raise ValueError(
            f"{location}: expected text, found the lone surrogate {half.decode()}, which is half "
            "of a character. Was an emoji cut in two?"
        ) from error


def excerpt(text: str) -> str:
    """At most 80 characters of a text, for error messages."""
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:77]}..."
