import json
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from spacy.tokens import Token

from elmo_plugin.corpora.json_lines import excerpt
from elmo_plugin.corpora.tokenizer import sentences_by_rules, tokenize_with_spacy
from elmo_plugin.tasks.coref.reader import UNKNOWN, genre_of

EXAMPLE = '{"text": "Anna lost her keys."}'
_EXAMPLE_OF_SENTENCES = '{"sentences": [["Anna", "left", "."]], "speakers": ["Tom"]}'


class InputDocument(NamedTuple):
    """A document to predict."""

    document_id: str
    sentences: List[List[str]]
    #: One per token.
    speakers: Optional[List[str]]
    genre: str
    #: The raw text, if the input has one.
    text: Optional[str] = None
    #: Start and end offset of each token in `text`.
    characters: Optional[List[Tuple[int, int]]] = None


def document_of(line: Dict[str, Any], location: str) -> InputDocument:
    """
    Reads an object with `text`, or with `sentences` and optionally `speakers`, one for each. It may
    have `id` and `genre`, by default `genre_of` the `id`. Another form raises a `ValueError`.
    """
    check = partial(_check, location)
    check(("text" in line) != ("sentences" in line), 'either "text" or "sentences"', line)
    for key in ("id", "genre"):
        name = line.get(key)
        check(name is None or isinstance(name, str) and name, f'"{key}" to be some text', name)
    document_id = line.get("id") or UNKNOWN
    genre = line.get("genre") or genre_of(document_id)
    if "sentences" in line:
        return InputDocument(document_id, line["sentences"], _speakers(line, check), genre)
    text = line["text"]
    check(isinstance(text, str), '"text" to be a string', text)
    check(line.get("speakers") is None, '"speakers" only with "sentences", one for each', line)
    sentences = split_sentences(text)
    check(sentences, '"text" with at least one word', text)
    return InputDocument(
        document_id,
        [[token.text for token in sentence] for sentence in sentences],
        None,
        genre,
        text,
        [(token.idx, token.idx + len(token)) for sentence in sentences for token in sentence],
    )


def split_sentences(text: str) -> List[List[Token]]:
    """Splits by spaCy's rules for English, and at empty lines: headings have no full stop."""
    tokens = tokenize_with_spacy(text)
    if not tokens:
        return []
    sentences: List[List[Token]] = []
    for sentence in sentences_by_rules(tokens[0].doc):
        sentences.append([])
        for token in sentence:
            if not token.is_space:
                sentences[-1].append(token)
            elif token.text.count("\n") > 1:
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def _speakers(line: Dict[str, Any], check: Callable[..., None]) -> Optional[List[str]]:
    """The speaker of each token, after checking sentences and speakers."""
    sentences, speakers = line["sentences"], line.get("speakers")
    check(
        isinstance(sentences, list) and sentences,
        '"sentences" to be a list of sentences, at least one',
        sentences,
    )
    for number, words in enumerate(sentences):
        check(
            isinstance(words, list) and words and all(isinstance(w, str) and w for w in words),
            f'sentence {number} of "sentences" to be a list of words, none of them empty',
            words,
        )
    if speakers is None:
        return None
    are_names = isinstance(speakers, list) and all(isinstance(name, str) for name in speakers)
    check(are_names, '"speakers" to be a list of names, one for each sentence', speakers)
    expected = f'"speakers" to name one for each of {len(sentences)} sentences, "-" if not known'
    check(len(speakers) == len(sentences), expected, speakers)
    return [speaker for speaker, words in zip(speakers, sentences) for _ in words]


def _check(location: str, is_valid: Any, expected: str, found: Any) -> None:
    if not is_valid:
        shown = excerpt(json.dumps(found, ensure_ascii=False))
        raise ValueError(
            f"{location}: expected {expected}, found {shown}. A line is like {EXAMPLE} or "
            f"{_EXAMPLE_OF_SENTENCES}"
        )
