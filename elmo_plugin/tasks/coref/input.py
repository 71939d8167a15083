"""Parses input lines of the coreference predictor."""

import json
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from spacy.pipeline import Sentencizer
from spacy.tokens import Token

from elmo_plugin.corpora.json_lines import excerpt
from elmo_plugin.tasks.coref.reader import UNKNOWN, genre_of
from elmo_plugin.tasks.tokenizer import tokenize_with_spacy

EXAMPLE = '{"text": "Anna lost her keys."}'


class InputDocument(NamedTuple):
    """
    # Parameters

    document_id : `str`
    sentences : `List[List[str]]`
    speakers : `Optional[List[str]]`
        One per token.
    genre : `str`
    text : `Optional[str]`
        The raw text, if the input has one.
    characters : `Optional[List[Tuple[int, int]]]`
        Start and end offset of each token in `text`.
    """

    document_id: str
    sentences: List[List[str]]
    speakers: Optional[List[str]]
    genre: str
    text: Optional[str] = None
    characters: Optional[List[Tuple[int, int]]] = None


def document_of(line: Dict[str, Any], place: str) -> InputDocument:
    """
    # Parameters

    line : `Dict[str, Any]`
        An object with `text`, or with `sentences` and optionally `speakers`, one per sentence;
        optionally with `genre` (default: the one that the `id` begins with) and `id`.
    place : `str`
        The location of the line, for error messages.

    # Raises

    `ValueError`
        If the object has another form, or no words.
    """
    if ("text" in line) == ("sentences" in line):
        raise _error(place, 'either "text" or "sentences"', line)
    document_id = _name(line, place, "id")
    genre = _name(line, place, "genre", default=genre_of(document_id))
    if "sentences" in line:
        sentences, speakers = _sentences(line, place), _speakers(line, place)
        return InputDocument(document_id, sentences, speakers, genre)
    text = line["text"]
    if not isinstance(text, str):
        raise _error(place, '"text" to be a string', text)
    if line.get("speakers") is not None:
        raise _error(place, '"speakers" only with "sentences", one for each', line)
    sentences = split_sentences(text)
    if not sentences:
        raise _error(place, '"text" with at least one word', text)
    return InputDocument(
        document_id,
        [[token.text for token in sentence] for sentence in sentences],
        None,
        genre,
        text,
        [(token.idx, token.idx + len(token)) for sentence in sentences for token in sentence],
    )


def split_sentences(text: str) -> List[List[Token]]:
    """
    The sentences of a text by spaCy's rules for English, which need no trained model. An empty line
    also ends a sentence, since headings have no full stop.
    """
    tokens = tokenize_with_spacy(text)
    if not tokens:
        return []
    sentences: List[List[Token]] = []
    for sentence in Sentencizer()(tokens[0].doc).sents:
        sentences.append([])
        for token in sentence:
            if not token.is_space:
                sentences[-1].append(token)
            elif token.text.count("\n") > 1:
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def _sentences(line: Dict[str, Any], place: str) -> List[List[str]]:
    sentences = line["sentences"]
    if not isinstance(sentences, list) or not sentences:
        raise _error(place, '"sentences" to be a list of sentences, at least one', sentences)
    for number, words in enumerate(sentences):
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(word, str) and word for word in words)
        ):
            expected = f'sentence {number} of "sentences" to be a list of words, none of them empty'
            raise _error(place, expected, words)
    return sentences


def _speakers(line: Dict[str, Any], place: str) -> Optional[List[str]]:
    speakers = line.get("speakers")
    if speakers is None:
        return None
    if not isinstance(speakers, list) or not all(isinstance(name, str) for name in speakers):
        raise _error(place, '"speakers" to be a list of names, one for each sentence', speakers)
    if len(speakers) != len(line["sentences"]):
        raise _error(
            place,
            f'"speakers" to name one for each of {len(line["sentences"])} sentences, "-" where it '
            "is not known",
            speakers,
        )
    return [
        speaker for speaker, words in zip(speakers, line["sentences"]) for _ in range(len(words))
    ]


def _name(line: Dict[str, Any], place: str, key: str, default: str = UNKNOWN) -> str:
    name = line.get(key)
    if name is None:
        return default
    if not isinstance(name, str) or not name:
        raise _error(place, f'"{key}" to be a name', name)
    return name


def _error(place: str, expected: str, found: Any) -> ValueError:
    shown = excerpt(json.dumps(found, ensure_ascii=False))
    return ValueError(f"{place}: expected {expected}, found {shown}. A line is like {EXAMPLE}")
