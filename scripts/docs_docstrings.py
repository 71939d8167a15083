"""For mkdocstrings: turns the entries of docstring sections such as `# Parameters` into lists."""

from typing import Any, List

import griffe


class Lists(griffe.Extension):
    """Makes `name : type` and the indented lines below it an item of a list."""

    def on_instance(self, *, obj: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = with_lists(obj.docstring.value)


def with_lists(docstring: str) -> str:
    """The docstring, with the entries below its headings as items of Markdown lists."""
    lines: List[str] = []
    section = ""
    source = docstring.split("\n")
    for number, line in enumerate(source):
        if line.startswith("# "):
            section = line[2:]
        following = source[number + 1] if number + 1 < len(source) else ""
        is_entry = " : " in line or following.startswith("    ")
        if section not in ("", "Examples") and line and line[0] not in " #" and is_entry:
            line = f"- {line}"
        lines.append(line)
    return "\n".join(lines)
