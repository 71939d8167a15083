"""
Links from the guide and the README to other files of the repository, for places that do not have
these files: the website (docs_site.py) and the page on a package index, which setup.py writes. They
lead to `Repository` of pyproject.toml; without one they are plain text.
"""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Mapping, Optional

_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_PYPROJECT = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")

#: The address of the repository, such as https://github.com/OWNER/NAME; `None` if not known.
REPOSITORY: Optional[str] = tomllib.loads(_PYPROJECT)["project"]["urls"].get("Repository")


def link_to_repository(
    markdown: str,
    page: str,
    revision: str,
    site: Mapping[str, str] = {},
    repository: Optional[str] = REPOSITORY,
) -> str:
    """
    The text of a `page` (a path in the repository), with absolute links to files of the repository
    in a `revision` of it. `site` has the paths on a website by the paths in the repository; links
    to these files stay relative.
    """

    def absolute(link: "re.Match[str]") -> str:
        text, target, anchor = link.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if path in site:
            place = posixpath.relpath(site[path], posixpath.dirname(site[page]) or ".")
            return f"[{text}]({place}{anchor or ''})"
        if site and not repository:
            # MkDocs warns of it.
            return link[0]
        if not repository:
            return text if text.strip("`") == path else f"{text} (`{path}`)"
        return f"[{text}]({repository}/blob/{revision}/{path}{anchor or ''})"

    return _LINK.sub(absolute, markdown)
