import json
from typing import Any, Dict, List, Sequence, Union

import spacy

from elmo_plugin.util.errors import ConfigurationError


def check_form(line: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the line. Raises `ValueError` if its text or its predicates have another form."""
    words, predicates = line.get("tokens", [line.get("sentence")]), line.get("predicates")
    is_text = isinstance(words, list) and all(isinstance(word, str) for word in words)
    is_list = isinstance(predicates, list) and {*map(type, predicates)} <= {int, str}
    has_empty = is_text and "tokens" in line and "" in words
    has_form = is_list or predicates in (None, "all")
    for is_right, expected in (
        ("sentence" in line or "tokens" in line, 'an object with "sentence" or "tokens"'),
        (is_text, '"sentence" to be text, or "tokens" a list of words'),
        (not has_empty, '"tokens" to hold no empty word'),
        (has_form, '"predicates" to be a list of whole numbers or words, or "all"'),
    ):
        if not is_right:
            raise ValueError(f"expected {expected}")
    return line


def positions_of(predicates: List[Union[int, str]], words: List[str]) -> List[int]:
    """The positions of predicates, which are given as positions or as words."""
    found: List[int] = []
    for predicate in predicates:
        if isinstance(predicate, str):
            # A word that is given twice means two places.
            places = [n for n, word in enumerate(words) if word == predicate and n not in found]
        else:
            # A spaCy pipeline may have merged tokens since the line was checked.
            places = [predicate] if 0 <= predicate < len(words) else []
        if not places:
            allowed = f"words or positions from 0 to {len(words) - 1}" if words else "an empty list"
            raise ValueError(
                f'expected "predicates" to be {allowed}, found {json.dumps(predicate)} for '
                f"{json.dumps(words)}"
            )
        found.append(places[0])
    return sorted(set(found))


def words_of(tokens: Sequence[Any]) -> List[str]:
    return [token.text for token in tokens]


def load_spacy(spacy_model: str) -> Any:
    try:
        return spacy.load(spacy_model)
    except OSError as error:
        raise ConfigurationError(
            f"spaCy cannot load {spacy_model!r} ({error}). Install it with `python -m spacy "
            "download NAME`, correct its path, or give the predicates."
        ) from error
