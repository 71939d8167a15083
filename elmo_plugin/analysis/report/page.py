from importlib.resources import files
from typing import List

from elmo_plugin.analysis.report.section import Section

__all__ = ["page"]


def page(title: str, sections: List[Section]) -> str:
    """
    A page of HTML that needs no other file and no network.

    # Raises

    `ImportError`
        If Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("A report needs the package jinja2: pip install jinja2") from error
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = (files("elmo_plugin.analysis.report") / "page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(title=title, sections=sections)
