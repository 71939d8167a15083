"""For MkDocs: pages of the website that are not in docs/, and the links between all pages."""

import json
from pathlib import Path
from typing import Any, Dict

from docs_links import link_to_repository
from mkdocs.structure.files import File

_PROJECT = Path(__file__).resolve().parent.parent
_OTHERS = [
    *("pretrained/**/*.md", "pretrained/**/*.svg", "examples/*.ipynb", "examples/own_data.py"),
    *("benchmarks/README.md", "experiments/README.md", "experiments/results/report.html"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "pretrained/tasks/everyday.json"),
]


def on_files(files: Any, config: Any) -> None:
    for pattern in _OTHERS:
        for path in sorted(_PROJECT.glob(pattern)):
            place = path.relative_to(_PROJECT).as_posix().replace(".ipynb", ".md")
            files.append(File.generated(config, place, abs_src_path=str(path)))


def on_page_read_source(page: Any, config: Any) -> Any:
    """The Markdown of a notebook; `None` for other pages, which MkDocs reads itself."""
    path = Path(page.file.abs_src_path)
    if path.suffix != ".ipynb":
        return None
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(map(_cell, cells))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    site = {_in_repository(file): file.src_uri for file in files} | {"README.md": "README.md"}
    return link_to_repository(markdown, _in_repository(page.file), "main", site)


def _in_repository(file: File) -> str:
    path = Path(file.abs_src_path)
    return path.relative_to(_PROJECT).as_posix() if path.is_relative_to(_PROJECT) else str(path)


def _cell(cell: Dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    parts = [_block("bash" if source.startswith("%%bash") else "python", source)]
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "text/html" in data:
            parts.append(f"<div>{''.join(data['text/html'])}</div>")
        else:
            parts.append(_block("text", "".join(output.get("text") or data["text/plain"])))
    return "\n\n".join(parts)


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
