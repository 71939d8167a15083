"""
Links from the guide and the README to other files of the repository, for places that do not have
these files: the website, of which this is a hook for MkDocs, and the page on a package index, which
setup.py writes. They lead to `Repository` of pyproject.toml; without one they are plain text.
"""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any, Optional

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_PYPROJECT = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")

#: The address of the repository, such as https://github.com/OWNER/NAME; `None` if not known.
REPOSITORY: Optional[str] = tomllib.loads(_PYPROJECT)["project"]["urls"].get("Repository")


def link_to_repository(
    markdown: str, page: str, revision: str, kept: str = "", repository: Optional[str] = REPOSITORY
) -> str:
    """
    The text of a `page` (a path in the repository), with absolute links to files of the repository
    in a `revision` of it. Links to files in the folder `kept` stay as they are.
    """

    def absolute(link: "re.Match[str]") -> str:
        text, target, anchor = link.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if kept and path.startswith(kept):
            return link[0]
        if not repository:
            return text if text.strip("`") == path else f"{text} (`{path}`)"
        return f"[{text}]({repository}/blob/{revision}/{path}{anchor or ''})"

    return _LINK.sub(absolute, markdown)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return link_to_repository(markdown, f"docs/{page.file.src_uri}", "main", kept="docs/")
