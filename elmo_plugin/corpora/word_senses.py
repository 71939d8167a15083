"""
Words annotated with WordNet senses: JSON lines, and the XML and key files of the evaluation
framework of [Raganato et al. (2017)](https://aclanthology.org/E17-1010/).
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Optional, Tuple, Union
from xml.etree import ElementTree

from elmo_plugin.corpora.json_lines import read_objects
from elmo_plugin.util.text_files import find_file, numbered_lines

#: A lower-case lemma, words joined by `_`, and its part of speech: NOUN, VERB, ADJ, ADV.
Lemma = Tuple[str, str]

_LISTS = ("tokens", "lemmas", "pos", "senses")
_XML, _KEYS = ".data.xml", ".gold.key.txt"
# An id without the name of its test set: d000.s000
_DOCUMENT = re.compile(r"d\d+(\.|$)")


@dataclass(frozen=True)
class SenseInstance:
    """An annotated token."""

    #: The token's position in its sentence, from 0.
    position: int
    lemma: Lemma
    #: The correct sense keys, usually one.
    senses: Tuple[str, ...]


@dataclass(frozen=True)
class SenseSentence:
    """A sentence with annotated tokens."""

    #: The corpus or test set, `semeval2013`: the first part of the sentence's id, or of the name of
    #: its file if ids do not contain it.
    corpus: str
    #: A multi-word unit is one token, joined by `_`.
    tokens: Tuple[str, ...]
    #: The annotated tokens, in order.
    instances: Tuple[SenseInstance, ...]


class SenseCorpus:
    """
    The sentences of a file. The file is streamed anew each time the object is iterated.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`. Either JSON lines, `{"id", "tokens", "lemmas", "pos", "senses"}` with four
        lists of equal length, in which a sense is null, a key, or several keys separated by spaces;
        or `NAME.data.xml` of the framework, whose keys are in `NAME.gold.key.txt` beside it.

    # Raises

    `ValueError`
        While iterating, if the file is malformed, not UTF-8 or holds no annotated words, or a key
        is missing; with file and line.
    """

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        self.path = os.fspath(path)

    def __iter__(self) -> Iterator[SenseSentence]:
        is_xml = self.path.removesuffix(".gz").endswith(".xml")
        is_empty = True
        for sentence in (_read_xml if is_xml else _read_json)(self.path):
            is_empty = is_empty and not sentence.instances
            yield sentence
        if is_empty:
            raise ValueError(f"{self.path}: expected words with senses, found none.")


def read_first_senses(
    path: Union[str, os.PathLike], lemmas: Optional[Collection[Lemma]] = None
) -> Dict[Lemma, str]:
    """
    The first WordNet sense of each lemma, from a table with one `lemma<TAB>POS<TAB>sense key` per
    line.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`.
    lemmas : `Optional[Collection[Lemma]]`, optional (default = `None`)
        The lemmas to read. Default: all.

    # Raises

    `ValueError`
        If a line does not have three cells; the message names file and line.
    """
    senses: Dict[Lemma, str] = {}
    for number, line in numbered_lines(path, newline="\n"):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        if len(cells) != 3:
            raise ValueError(
                f"{path}:{number}: expected lemma, part of speech and sense key separated by tabs, "
                f"found {len(cells)} cells."
            )
        lemma = (cells[0].lower(), cells[1])
        if lemmas is None or lemma in lemmas:
            senses.setdefault(lemma, cells[2])
    return senses


def _read_json(path: str) -> Iterator[SenseSentence]:
    for location, found in read_objects(path):
        if not isinstance(found.get("id"), str):
            raise ValueError(f'{location}: expected "id", a string, found {found.get("id")!r}.')
        tokens, lemmas, pos, senses = (_strings(found, name, location) for name in _LISTS)
        instances = tuple(
            SenseInstance(position, (lemmas[position].lower(), pos[position]), tuple(keys.split()))
            for position, keys in enumerate(senses)
            if keys.split()
        )
        yield SenseSentence(_corpus(found["id"], path), tuple(tokens), instances)


def _strings(found: Dict[str, Any], name: str, location: str) -> List[str]:
    """One of the lists of a line; a null among the senses becomes an empty string."""
    values, expected = found.get(name), found.get("tokens")
    if not isinstance(values, list) or not isinstance(expected, list):
        raise ValueError(f'{location}: expected a list as "{name}", found {type(values).__name__}.')
    if len(values) != len(expected):
        raise ValueError(
            f'{location}: expected {len(expected)} entries in "{name}", one per token, found '
            f"{len(values)}."
        )
    strings = ["" if value is None and name == "senses" else value for value in values]
    for value in strings:
        if not isinstance(value, str):
            raise ValueError(f'{location}: expected strings in "{name}", found {value!r}.')
    return strings


def _read_xml(path: str) -> Iterator[SenseSentence]:
    keys = _Keys(path)
    tokens: List[str] = []
    instances: List[SenseInstance] = []
    for element in _elements(path):
        if element.tag in ("wf", "instance"):
            if element.tag == "instance":
                instances.append(_instance(element, len(tokens), keys))
            tokens.append("_".join((element.text or "").split()))
        elif element.tag == "sentence":
            corpus = _corpus(element.get("id", ""), path)
            yield SenseSentence(corpus, tuple(tokens), tuple(instances))
            tokens, instances = [], []
            element.clear()
        elif element.tag == "text":
            # The text element still contains its sentences, which were only emptied.
            element.clear()


def _elements(path: str) -> Iterator[ElementTree.Element]:
    """The elements of an XML file, each at its end tag."""
    # `Any`, because the type of an event depends on its kind; all events here are end tags.
    parser: Any = ElementTree.XMLPullParser(("end",))
    try:
        for _, line in numbered_lines(path):
            parser.feed(f"{line}\n")
            yield from (element for _, element in parser.read_events())
        parser.close()
        yield from (element for _, element in parser.read_events())
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}: expected XML in UTF-8, found {error}.") from error


def _instance(element: ElementTree.Element, position: int, keys: "_Keys") -> SenseInstance:
    lemma = element.get("lemma", "").lower().replace(" ", "_")
    return SenseInstance(position, (lemma, element.get("pos", "")), keys.of(element.get("id", "")))


class _Keys:
    """The senses of instances, from the key file. Lines are read as far as needed: RAM does not
    grow if both files have the same order, as those of the framework do."""

    def __init__(self, xml: str) -> None:
        base = xml.removesuffix(".gz")
        if not base.endswith(_XML):
            raise ValueError(f"{xml}: expected a name that ends in {_XML}.")
        self._path = find_file(base.removesuffix(_XML) + _KEYS)
        self._lines = numbered_lines(self._path)
        self._read: Dict[str, Tuple[str, ...]] = {}

    def of(self, instance: str) -> Tuple[str, ...]:
        while instance not in self._read:
            number, line = next(self._lines, (0, ""))
            if not number:
                raise ValueError(f"{self._path}: expected a line for {instance!r}, found none.")
            name, *senses = line.split() or [""]
            if name and not senses:
                raise ValueError(
                    f"{self._path}:{number}: expected an id and its sense keys, found {line!r}."
                )
            self._read[name] = tuple(senses)
        return self._read.pop(instance)


def _corpus(sentence: str, path: str) -> str:
    name = Path(path).name if _DOCUMENT.match(sentence) else sentence
    return name.partition(".")[0]
