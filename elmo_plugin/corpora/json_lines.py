"""Files with a JSON object per line."""

import json
import os
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Tuple, Union

import spacy
from nltk.tokenize import NLTKWordTokenizer
from spacy.pipeline import Sentencizer
from spacy.tokens import Token

from elmo_plugin.corpora.files import numbered_lines

__all__ = ["parse_object", "read_objects", "refuse_halves", "tokenize", "tokens_of", "words_of"]


def read_objects(path: Union[str, os.PathLike]) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """
    Streams the objects of a file; empty lines are passed over.

    # Parameters

    path : `Union[str, os.PathLike]`
        A plain or gzip file, local or a URL.

    # Returns

    `Iterator[Tuple[str, Dict[str, Any]]]`
        `file:line`, and the object.

    # Raises

    `ValueError`
        If a line is not a JSON object or not UTF-8, a compressed file is damaged, or the file
        holds no objects.
    """
    is_empty = True
    # Some of Unicode's line separators may stand within a string.
    for number, line in numbered_lines(path, newline="\n"):
        if line.strip():
            is_empty = False
            place = f"{path}:{number}"
            yield place, parse_object(line, place)
    if is_empty:
        raise ValueError(f"{path}: the file is empty; expected a JSON object a line")


def parse_object(line: str, place: str, example: str = "") -> Dict[str, Any]:
    """
    Reads one line.

    # Parameters

    line : `str`
        The line, with or without its end.
    place : `str`
        Where it stands, for the error.
    example : `str`, optional (default = `""`)
        A line as it should be, for the error.

    # Returns

    `Dict[str, Any]`

    # Raises

    `ValueError`
        If the line is not one JSON object, with what is wrong and where.
    """
    like = f" like {example}" if example else ""
    try:
        found = json.loads(line.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{place}: expected a JSON object{like}, found {_shown(line)} ({error}). Each line "
            "must hold one whole object: was the file cut off, or is it of another kind?"
        ) from error
    if not isinstance(found, dict):
        raise ValueError(f"{place}: expected a JSON object{like}, found {_shown(line)}.")
    if "\\ud" in line.lower():
        refuse_halves(found, place)
    return found


def words_of(
    line: Dict[str, Any], place: str, text_key: str = "sentence", tokens_key: str = "tokens"
) -> List[str]:
    """
    The words of a text: as they are given, or those that `tokenize` finds.

    # Parameters

    line : `Dict[str, Any]`
        An object with `tokens_key`, a list of words, or `text_key`, a string.
    place : `str`
        Where it stands, for the error.

    # Returns

    `List[str]`

    # Raises

    `ValueError`
        If the object has neither, or has no word.
    """
    if tokens_key in line:
        words = line[tokens_key]
        if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
            raise ValueError(
                f'{place}: expected "{tokens_key}" to be a list of words, none of them empty, '
                f"found {_shown(json.dumps(words))}."
            )
    else:
        text = line.get(text_key)
        if not isinstance(text, str):
            raise ValueError(
                f'{place}: expected "{text_key}" with a text or "{tokens_key}" with a list of '
                f"words, found {_shown(json.dumps(line))}."
            )
        words = tokenize(text)
    if not words:
        raise ValueError(f"{place}: expected at least one word, found {_shown(json.dumps(line))}.")
    return words


def tokenize(text: str) -> List[str]:
    """
    The words of a text as the Penn Treebank divides it, by NLTK's rules: a word with hyphens is one
    word, as in SNLI, SST, CoNLL-2003 and the text that biLMs are trained on. Quotes and brackets
    stay as they are written.

    NLTK's rules look for a full stop at the end of the text only, so spaCy's rules split it into
    sentences first. Neither needs a model.
    """
    sentences = _SENTENCIZER(_english()(text)).sents
    return [
        sentence.text[start:end]
        for sentence in sentences
        for start, end in _TREEBANK.span_tokenize(sentence.text)
    ]


def tokens_of(text: str) -> List[Token]:
    """
    The words of a text by spaCy's English rules, with their places in the text. They divide a word
    with hyphens, as OntoNotes does.
    """
    return [token for token in _english()(text) if not token.is_space]


_TREEBANK, _SENTENCIZER = NLTKWordTokenizer(), Sentencizer()


@lru_cache(maxsize=None)
def _english() -> Any:
    return spacy.blank("en").tokenizer


def _shown(text: str) -> str:
    return repr(text.strip() if len(text) <= 80 else text.strip()[:77] + "...")


def refuse_halves(found: Any, place: str) -> None:
    """
    # Parameters

    found : `Any`
        What was read from JSON.
    place : `str`
        Where it stands, for the error.

    # Raises

    `ValueError`
        If it holds half of a character beyond 16 bits, which is no text.
    """
    try:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.start + 1].encode("ascii", "backslashreplace")
        raise ValueError(
            f"{place}: expected text, found {half.decode()}, half of a character. Was an emoji cut "
            "in two?"
        ) from error
