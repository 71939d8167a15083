"""Reads what a notebook would show."""

from typing import Any
from xml.etree import ElementTree


def shown(thing: Any) -> ElementTree.Element:
    """The HTML of an object, as a tree; an error if it is not well-formed."""
    return ElementTree.fromstring(f"<div>{thing._repr_html_()}</div>")


def text_of(tree: ElementTree.Element) -> str:
    """Its text, with a blank between words and between elements."""
    return " ".join(" ".join(tree.itertext()).split())
