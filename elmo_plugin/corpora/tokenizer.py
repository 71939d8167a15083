"""
Splits raw text into words, and reads words as treebanks write them. The tokenizers need no trained
model, but spaCy, and `treebank_words` also NLTK.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence

from elmo_plugin.util.errors import ConfigurationError, expect
from elmo_plugin.util.optional import optional_package

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

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


def plain_word(word: str) -> str:
    """
    The word without the escapes of the Penn Treebank and of parsers trained on it, as in the
    vocabularies of word vectors and language models: plain brackets and quotes, and no backslash
    before a slash or an asterisk.
    """
    return _TREEBANK_ESCAPES.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def _imported(name: str) -> Any:
    purpose = "Splitting raw text into words"
    return optional_package(name, purpose, "'elmo-plugin[analysis]'", ConfigurationError)


@lru_cache(maxsize=None)
def _spacy(language: str) -> Any:
    spacy = _imported("spacy")
    try:
        return spacy.blank(language).tokenizer
    except ImportError as error:
        raise ConfigurationError(
            f"Expected the code of a language that spaCy can tokenise, such as en or de, found "
            f"{language!r} ({error})."
        ) from error


@lru_cache(maxsize=None)
def _treebank() -> Any:
    return _imported("nltk.tokenize").NLTKWordTokenizer()


@lru_cache(maxsize=None)
def _sentencizer() -> Any:
    return _imported("spacy.pipeline").Sentencizer()


def tokenize_with_spacy(text: str, language: str = "en") -> List["Token"]:
    """
    Tokens with their character offsets, by spaCy's rules for a language. Those for English split
    hyphenated words, as in OntoNotes. A `ConfigurationError` for a code that spaCy does not know.
    """
    return [token for token in _spacy(language)(text) if not token.is_space]


def sentences_by_rules(document: "Doc") -> Iterator["Span"]:
    """The sentences of a document by the rules of spaCy's `Sentencizer`, which it then has, too."""
    return _sentencizer()(document).sents


def verb_positions(tokens: Sequence["Token"]) -> Optional[List[int]]:
    """
    The positions of the verbs among tokens of a spaCy document: those whose `tag_` begins with
    `VB`, or in a document without tags, whose `pos_` is `VERB` or `AUX`; `None` without both.
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
    Words by the rules of the Penn Treebank, as implemented by NLTK. Hyphenated words stay whole, as
    in SNLI, SST, CoNLL-2003 and the training text of biLMs. Quotes and brackets are not escaped.
    """
    # NLTK splits off a full stop at the end of the text only.
    sentences = sentences_by_rules(_spacy("en")(text))
    return [
        sentence.text[start:end]
        for sentence in sentences
        for start, end in _treebank().span_tokenize(sentence.text)
    ]


def words_of_line(
    line: Dict[str, Any], location: str, text_key: str = "sentence", tokens_key: str = "tokens"
) -> List[str]:
    """
    The words of an input line: its list of tokens, or else its text split by `treebank_words`. A
    `ValueError` with the location if the line has neither of them, or no words.
    """
    words: Any = line.get(tokens_key)
    if tokens_key in line:
        is_right = isinstance(words, list) and all(isinstance(w, str) and w for w in words)
        expected = f'"{tokens_key}" to be a list of words, none of them empty'
    else:
        text = line.get(text_key)
        words = treebank_words(text) if isinstance(text, str) else None
        is_right = words is not None
        expected = f'"{text_key}" with a text or "{tokens_key}" with a list of words'
    expect(is_right, location, expected, line)
    expect(words, location, "at least one word", line)
    return words
