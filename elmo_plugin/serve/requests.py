"""The schema of the requests of each task, and limits that hold for all requests."""

from dataclasses import dataclass
from typing import Any, Dict, Sequence

#: For each task, an example of a request.
EXAMPLES: Dict[str, Dict[str, Any]] = {
    "ner": {"sentence": "Ada Lovelace met Charles Babbage in London."},
    "srl": {"sentence": "The girl gave her brother a book and left.", "predicates": [2, 8]},
    "coref": {
        "text": "The company said that it would sell its factories. The workers fear that they "
        "will lose their jobs."
    },
    "squad": {
        "passage": "Ada Lovelace was born in London in 1815. She wrote the first program for a "
        "machine that Charles Babbage had designed.",
        "question": "Where was Ada Lovelace born?",
    },
    "snli": {
        "premise": "Two dogs run across a green field.",
        "hypothesis": "Some animals are outside.",
    },
    "sst": {"sentence": "A quiet film, and a joy from beginning to end."},
}

_WORDS = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
_TEXT = {"type": "string", "minLength": 1}
_POSITIONS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
_PROPERTIES: Dict[str, Dict[str, Any]] = {
    "ner": {"sentence": _TEXT, "tokens": _WORDS},
    "srl": {
        "sentence": _TEXT,
        "tokens": _WORDS,
        "predicates": {"anyOf": [_POSITIONS, {"const": "all"}]},
    },
    "coref": {
        "text": _TEXT,
        "sentences": {"type": "array", "items": _WORDS, "minItems": 1},
        "speakers": {"type": "array", "items": {"type": "string"}},
        "id": _TEXT,
        "genre": _TEXT,
    },
    "squad": {"passage": _TEXT, "question": _TEXT, "id": {"type": "string"}},
    "snli": {
        "premise": _TEXT,
        "hypothesis": _TEXT,
        "premise_tokens": _WORDS,
        "hypothesis_tokens": _WORDS,
    },
    "sst": {"sentence": _TEXT, "tokens": _WORDS},
    "word": {"words": _WORDS, "position": {"type": "integer", "minimum": 0}},
}


@dataclass(frozen=True)
class Limits:
    """Limits of a request, which bound memory and time."""

    #: Size of its body.
    max_bytes: int = 64 * 1024
    #: Number of words a model reads to answer it; a sentence counts once for each predicate.
    max_words: int = 1000
    #: Length of a word.
    max_characters: int = 200

    def check_words(self, texts: Sequence[Sequence[str]]) -> None:
        """Raises `TooLarge` if there are too many words, or one is too long."""
        num_words = sum(map(len, texts))
        if num_words > self.max_words:
            raise TooLarge(
                f"the request: expected at most {self.max_words} words for a model to read, found "
                f"{num_words}. Send parts of the text, or fewer predicates of a sentence."
            )
        longest = max((len(word) for words in texts for word in words), default=0)
        if longest > self.max_characters:
            raise TooLarge(
                f"the request: expected words of at most {self.max_characters} characters, found "
                f"one of {longest}. Leave it out, or split it."
            )


class TooLarge(ValueError):
    """A request is above a limit. The message says which."""


def schema(kind: str) -> Dict[str, Any]:
    """The JSON schema of a request, with an example."""
    found: Dict[str, Any] = {"type": "object", "properties": _PROPERTIES[kind]}
    if kind in EXAMPLES:
        found["examples"] = [EXAMPLES[kind]]
    return found
