"""For MkDocs: points links to files outside docs/ to the repository, if mkdocs.yml names it."""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#\s]*)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def in_repository(link: "re.Match[str]") -> str:
        text, target, anchor = link.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        if path.startswith("docs/"):
            return link[0]
        if not config.repo_url:
            return text if text.strip("`") == path else f"{text} (`{path}`)"
        return f"[{text}]({config.repo_url}/blob/main/{path}{anchor or ''})"

    return _LINK.sub(in_repository, markdown)
