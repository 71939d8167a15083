from importlib.resources import files
from typing import List

from elmo_plugin.analysis.report.section import Section
from elmo_plugin.util.optional import optional_package


def page(title: str, sections: List[Section]) -> str:
    """
    A page of HTML that needs no other file and no network.

    # Raises

    `ImportError`
        If Jinja is not installed.
    """
    jinja2 = optional_package("jinja2", "A report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = (files("elmo_plugin.analysis.report") / "page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(title=title, sections=sections)
