"""Reads files with one JSON object per line, and checks their fields."""

import json
import re
from typing import Any, Dict, Iterator, Tuple

from elmo_plugin.util.errors import excerpt, expect, unexpected
from elmo_plugin.util.text_files import FilePath, numbered_lines

_KINDS = {str: "a string", list: "a list", int: "an integer"}
_TYPES = {"string": str, "array": list, "integer": int}


def read_objects(path: FilePath) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """
    Yields `file:line` and object of each line that is not empty. Raises `ValueError` if a line is
    not a JSON object or not UTF-8, or the file holds no objects.
    """
    is_empty = True
    # Strings may contain other Unicode line separators.
    for number, line in numbered_lines(path, newline="\n"):
        if line.strip():
            is_empty = False
            location = f"{path}:{number}"
            yield location, parse_object(line, location)
    expect(not is_empty, path, "one JSON object per line", "an empty file")


def parse_object(text: str, location: str, example: str = "") -> Dict[str, Any]:
    """
    The object that a text holds. Raises `ValueError`, with `location` and a correct `example`, if
    it is not one JSON object, or a string contains half of a surrogate pair, which is not UTF-8.
    """
    found, shown, reason = None, excerpt(text), "."
    try:
        found = json.loads(text.removeprefix("\ufeff"))
        if "\\ud" in text.lower():
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start].encode("ascii", "backslashreplace").decode()
        advice = "It is half of a character. Was an emoji cut in two?"
        raise unexpected(location, "text", f"the lone surrogate {half}", advice) from error
    except (ValueError, RecursionError) as error:
        found, reason = None, f" ({error}). Was it cut off, or is it in another format?"
        if "\n" in text.strip():
            place = getattr(error, "pos", 0)
            shown = text[max(0, place - 20) : place + 20]
    if not isinstance(found, dict):
        like = f" like {example}" if example else ""
        raise ValueError(f"{location}: expected a JSON object{like}, found {shown!r}{reason}")
    return found


def check_fields(
    fields: Dict[str, Any], schema: Dict[str, Dict[str, Any]], location: str, example: str
) -> Dict[str, Any]:
    """
    Returns an object without its null fields, which count as absent. Raises `ValueError` if it is
    no object, or a field does not fit its JSON schema, whose `description` is in the message.
    """
    expect(isinstance(fields, dict), location, f"an object like {example}", fields)
    fields = {name: value for name, value in fields.items() if value is not None}
    for name, form in schema.items():
        if name in fields:
            expected = f'"{name}" to be {form.get("description", form)}'
            shown = excerpt(json.dumps(fields[name], ensure_ascii=False))
            advice = f"A correct input is {example}"
            expect(_fits(fields[name], form), location, expected, shown, advice)
    return fields


def _fits(value: Any, form: Dict[str, Any]) -> bool:
    """Whether a value fits a JSON schema of strings, integers or lists of them."""
    if "anyOf" in form:
        return any(_fits(value, each) for each in form["anyOf"])
    if "const" in form:
        return bool(value == form["const"])
    # Not `isinstance`: bool is a subclass of int.
    if type(value) is not _TYPES.get(form.get("type", ""), type(value)):
        return False
    if isinstance(value, str):
        return bool(re.search(form.get("pattern", ""), value))
    if isinstance(value, list):
        is_long = len(value) >= form.get("minItems", 0)
        return is_long and all(_fits(each, form.get("items", {})) for each in value)
    return "minimum" not in form or value >= form["minimum"]


def field(
    fields: Any, key: str, kind: type, location: str, example: str = "", expected: str = ""
) -> Any:
    """
    The value of a field. Raises `ValueError` if there is none or it is not of its `kind` (`str`,
    `list` or `int`). The other parameters are for the message; `expected` describes the value.
    """
    is_object = isinstance(fields, dict)
    value = fields.get(key) if is_object else None
    # Not `isinstance`: bool is a subclass of int.
    if type(value) is not kind:
        found = value if is_object and key in fields else fields
        like = f", as in {example}" if example else ""
        expected = f'"{key}" with {expected or _KINDS[kind]}{like}'
        shown = excerpt(json.dumps(found, ensure_ascii=False))
        raise unexpected(location, expected, shown)
    return value
