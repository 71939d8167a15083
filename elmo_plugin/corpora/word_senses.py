"""
Words annotated with WordNet senses: JSON lines, and the XML and key files of the evaluation
framework of [Raganato et al. (2017)](https://aclanthology.org/E17-1010/).
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Optional, Tuple
from xml.etree import ElementTree

from elmo_plugin.corpora.json_lines import field, read_objects
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath, numbered_lines

#: A lower-case lemma, words joined by `_`, and its part of speech: NOUN, VERB, ADJ, ADV.
Lemma = Tuple[str, str]

_LISTS = ("tokens", "lemmas", "pos", "senses")
_XML, _KEYS = ".data.xml", ".gold.key.txt"
# An id without the name of a test set: d000.s000
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
    #: The corpus or test set, such as `semeval2013`: the first part of the sentence's id, or of the
    #: file name if ids do not contain it.
    corpus: str
    #: A multi-word unit is one token, joined by `_`.
    tokens: Tuple[str, ...]
    #: The annotated tokens, in order.
    instances: Tuple[SenseInstance, ...]


class SenseCorpus:
    """
    The sentences of a file, which is streamed anew at each iteration.

    The file is JSON lines, `{"id", "tokens", "lemmas", "pos", "senses"}` with four lists of equal
    length, in which a sense is null, a key, or several keys between spaces. Or it is
    `NAME.data.xml` of the framework, with the keys in `NAME.gold.key.txt` beside it. Iteration
    raises `ValueError` if a file is malformed, has no annotated words, or lacks a key.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = str(path)

    def __iter__(self) -> Iterator[SenseSentence]:
        is_xml = self.path.removesuffix(".gz").endswith(".xml")
        is_empty = True
        for sentence in (_read_xml if is_xml else _read_json)(self.path):
            is_empty = is_empty and not sentence.instances
            yield sentence
        expect(not is_empty, self.path, "words with senses", "none")


def read_first_senses(
    path: FilePath, lemmas: Optional[Collection[Lemma]] = None
) -> Dict[Lemma, str]:
    """
    The first WordNet sense of each lemma, or of `lemmas` only, from a table with lines
    `lemma<TAB>POS<TAB>sense key`. Raises `ValueError` with file and line if a line has other cells.
    """
    senses: Dict[Lemma, str] = {}
    for number, line in numbered_lines(path, newline="\n"):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        expected = "lemma, part of speech and sense key separated by tabs"
        expect(len(cells) == 3, f"{path}:{number}", expected, f"{len(cells)} cells")
        lemma = (cells[0].lower(), cells[1])
        if lemmas is None or lemma in lemmas:
            senses.setdefault(lemma, cells[2])
    return senses


def _read_json(path: str) -> Iterator[SenseSentence]:
    for location, found in read_objects(path):
        name = field(found, "id", str, location)
        tokens, lemmas, pos, senses = (_strings(found, key, location) for key in _LISTS)
        instances = tuple(
            SenseInstance(position, (lemmas[position].lower(), pos[position]), tuple(keys.split()))
            for position, keys in enumerate(senses)
            if keys.split()
        )
        yield SenseSentence(_corpus(name, path), tuple(tokens), instances)


def _strings(found: Dict[str, Any], key: str, location: str) -> List[str]:
    """One of the lists of a line; a null among the senses becomes an empty string."""
    values, tokens = (field(found, name, list, location) for name in (key, "tokens"))
    strings = ["" if value is None and key == "senses" else value for value in values]
    is_right = len(values) == len(tokens) and all(isinstance(value, str) for value in strings)
    expect(is_right, location, f'"{key}" with {len(tokens)} strings, one per token', values)
    return strings


def _read_xml(path: str) -> Iterator[SenseSentence]:
    keys_path, keys = _read_keys(path)
    tokens: List[str] = []
    instances: List[SenseInstance] = []
    for element in _elements(path):
        if element.tag in ("wf", "instance"):
            if element.tag == "instance":
                instance, lemma = element.get("id", ""), element.get("lemma", "").lower()
                expect(instance in keys, keys_path, f"a line for {instance!r}", "none")
                lemma = lemma.replace(" ", "_")
                word = SenseInstance(len(tokens), (lemma, element.get("pos", "")), keys[instance])
                instances.append(word)
            tokens.append("_".join((element.text or "").split()))
        elif element.tag == "sentence":
            corpus = _corpus(element.get("id", ""), path)
            yield SenseSentence(corpus, tuple(tokens), tuple(instances))
            tokens, instances = [], []
            element.clear()
        elif element.tag == "text":
            # It still contains its sentences, which were only emptied.
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


def _read_keys(xml: str) -> Tuple[str, Dict[str, Tuple[str, ...]]]:
    """The path of the key file, and the senses of each instance."""
    base = xml.removesuffix(".gz")
    expect(base.endswith(_XML), xml, f"a name that ends in {_XML}", "another")
    path = base.removesuffix(_XML) + _KEYS
    keys = {}
    for number, line in numbered_lines(path):
        name, *senses = line.split() or [""]
        expect(senses or not name, f"{path}:{number}", "an id and its sense keys", repr(line))
        keys[name] = tuple(senses)
    return path, keys


def _corpus(sentence: str, path: str) -> str:
    name = Path(path).name if _DOCUMENT.match(sentence) else sentence
    return name.partition(".")[0]
