"""Splits raw text into words by rules: needs spaCy, partly NLTK, and no trained model."""

import pkgutil
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence

from elmo_plugin.util.errors import ConfigurationError, expect, optional_package

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

#: Splits a sentence into words.
Tokenizer = Callable[[str], Sequence[str]]

_TREEBANK_ESCAPES = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
    "`": "'",
}

# A sentence in which the rules of the Penn Treebank split off only commas and the full stop.
_PLAIN = re.compile(r"(?i)(?a)(?!.*(--|cannot|gimme|gonna|gotta|lemme|wanna))([\w-]+,? )*[\w-]+\.?")
_PLAIN_WORD = re.compile(r"[,.]|[^ ,.]+")
_CURLY_APOSTROPHE = re.compile(r"(?<=\w)\u2019(?=\w)")  # NLTK splits contractions with ' only.


def plain_word(word: str) -> str:
    """
    Undoes the escapes of the Penn Treebank and of parsers trained on it: brackets, quotes, and a
    backslash before `/` or `*`. The vocabularies of word vectors and biLMs have plain words.
    """
    return _TREEBANK_ESCAPES.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def _imported(name: str) -> Any:
    return optional_package(name, "Splitting raw text into words", error=ConfigurationError)


@lru_cache(maxsize=None)
def _spacy(language: str) -> Any:
    spacy = _imported("spacy")
    packages = pkgutil.iter_modules(_imported("spacy.lang").__path__)
    languages = [package.name for package in packages if package.ispkg]
    if language not in languages:
        raise ConfigurationError(
            f"Expected a language that spaCy can split into words, found {language!r}. Give one of "
            f"{' '.join(languages)}; xx has rules for many languages."
        )
    try:
        return spacy.blank(language).tokenizer
    except ImportError as error:
        raise ConfigurationError(
            f"spaCy needs more packages to split the language {language!r} into words: {error}"
        ) from error


@lru_cache(maxsize=None)
def _treebank() -> Any:
    return _imported("nltk.tokenize").NLTKWordTokenizer()


@lru_cache(maxsize=None)
def _sentencizer() -> Any:
    return _imported("spacy.pipeline").Sentencizer()


def tokenize_with_spacy(text: str, language: str = "en") -> List["Token"]:
    """Tokens with offsets by spaCy's rules. Those of English split at hyphens, as in OntoNotes."""
    return [token for token in _spacy(language)(text) if not token.is_space]


def tokenizer_of(language: str) -> Tokenizer:
    """
    What splits a sentence into words: `treebank_words` for `en`, spaCy's rules for another code.
    No word has white space in it. The tokenizer keeps the distinct words that it has seen in RAM.

    Raises `ConfigurationError` if spaCy is not installed, does not have the language, or needs
    packages for it that are missing.
    """
    if language == "en":
        return treebank_words
    # Loaded here, so that a wrong language is refused before a text is read.
    _spacy(language)
    return partial(_spacy_words, language=language)


def _spacy_words(text: str, language: str) -> List[str]:
    # Some languages have tokens such as a number with spaces.
    return [word for token in _spacy(language)(text) for word in token.text.split()]


def sentences_by_rules(document: "Doc") -> Iterator["Span"]:
    """The sentences by the rules of spaCy's `Sentencizer`, which also marks them in `document`."""
    return _sentencizer()(document).sents


def verb_positions(tokens: Sequence["Token"]) -> Optional[List[int]]:
    """
    The positions of verbs: tokens whose `tag_` begins with `VB`, or, if the spaCy document has no
    tags, whose `pos_` is `VERB` or `AUX`. `None` if it has neither.
    """
    if not tokens:
        return []
    document = tokens[0].doc
    if document.has_annotation("TAG"):
        return [n for n, token in enumerate(tokens) if token.tag_.startswith("VB")]
    if document.has_annotation("POS"):
        return [n for n, token in enumerate(tokens) if token.pos_ in ("VERB", "AUX")]
    return None


def treebank_words(text: str) -> List[str]:
    """
    Words by NLTK's rules for the Penn Treebank. Hyphenated words stay whole, as in SNLI, SST,
    CoNLL-2003 and the training text of biLMs. Quotes and brackets are not escaped.
    """
    if _PLAIN.fullmatch(text):
        return _PLAIN_WORD.findall(text)
    # NLTK splits off a full stop only at the end of its input.
    sentences = (sentence.text for sentence in sentences_by_rules(_spacy("en")(text)))
    return [
        sentence[start:end]
        for sentence in sentences
        for start, end in _treebank().span_tokenize(_CURLY_APOSTROPHE.sub("'", sentence))
    ]


def words_of_line(
    line: Dict[str, Any],
    location: str,
    split: Tokenizer,
    text_key: str = "sentence",
    tokens_key: str = "tokens",
) -> List[str]:
    """The tokens of an input line, or else its text, split. `ValueError` if it has neither."""
    expected = f'"{text_key}" with a text or "{tokens_key}" with a list of words'
    expect(text_key in line or tokens_key in line, location, expected, line)
    return line[tokens_key] if tokens_key in line else list(split(line[text_key]))
