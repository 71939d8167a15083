import random
import sys

import pytest
import spacy

from elmo_plugin.corpora import tokenizer
from elmo_plugin.corpora.tokenizer import (
    plain_word,
    tokenize_with_spacy,
    tokenizer_of,
    treebank_words,
    words_of_line,
)
from elmo_plugin.util.errors import ConfigurationError


def test_words_are_taken_as_given_or_found_in_the_text():
    assert words_of_line(
        {"tokens": ["don't", "play"], "sentence": "x"}, "line 1", treebank_words
    ) == [
        "don't",
        "play",
    ]
    assert words_of_line({"sentence": " They don't \n play."}, "line 1", treebank_words) == [
        "They",
        "do",
        "n't",
        "play",
        ".",
    ]
    assert words_of_line({"premise": "Go now"}, "x", str.split, "premise", "tokens") == [
        "Go",
        "now",
    ]
    expected = 'line 7: expected "sentence" with a text or "tokens" with a list of words, found {}'
    with pytest.raises(ValueError, match=expected):
        words_of_line({}, "line 7", treebank_words)


@pytest.mark.parametrize(
    "text, words",
    [
        ("A gray-haired man's dog can't run.", "A gray-haired man 's dog ca n't run ."),
        ("It ran. Mr. Reed, 40, sat!", "It ran . Mr. Reed , 40 , sat !"),
        ("He said \"Go (now)\" and 'left'.", "He said \" Go ( now ) \" and ' left ' ."),
        ("``A'' \u201cb\u201d -- 3.5%...", "`` A '' \u201c b \u201d -- 3.5 % ..."),
        ("I can\u2019t see Tom\u2019s dog.", "I ca n\u2019t see Tom \u2019s dog ."),
        (
            "We\u2019re \u2018in\u2019 the dogs\u2019 run.",
            "We \u2019re \u2018 in \u2019 the dogs \u2019 run .",
        ),
    ],
)
def test_words_are_those_of_the_treebank_as_the_text_writes_them(text, words):
    assert treebank_words(text) == words.split()


def test_a_text_with_places_is_divided_at_hyphens():
    tokens = tokenize_with_spacy("A gray-haired\n man")
    assert [token.text for token in tokens] == ["A", "gray", "-", "haired", "man"]
    assert [token.idx for token in tokens] == [0, 2, 6, 7, 15]


@pytest.mark.parametrize("seed", range(5))
def test_no_character_of_a_text_is_lost(seed):
    pieces = [
        *"\"'`.,() ab\n<&\u201c\u2019\x1c\u200b",
        "n't",
        "''",
        "``",
        "--",
        "cannot",
        "\U0001f600",
    ]
    generator = random.Random(seed)
    for _ in range(100):
        text = "".join(generator.choices(pieces, k=12))
        assert "".join(treebank_words(text)) == "".join(text.split())


def test_text_without_words_has_no_tokens():
    assert treebank_words("") == treebank_words(" \n\t") == []


@pytest.mark.parametrize(
    "language, text, words",
    [
        ("en", "It didn't play chess.", "It did n't play chess ."),
        ("en", "A gray-haired man.", "A gray-haired man ."),
        ("de", "Er spielte z.B. „Dame“.", "Er spielte z.B. „ Dame “ ."),
        ("fr", "L'hiver, qu'il aime.", "L' hiver , qu' il aime ."),
        ("zh", "他们下棋。", "他 们 下 棋 。"),
        ("hi", "वे शतरंज खेलते थे।", "वे शतरंज खेलते थे ।"),
        ("ru", "Он сказал: «да».", "Он сказал : « да » ."),
        ("xx", "a\u00a0b \u2003 c", "a b c"),
        ("de", " \t ", ""),
    ],
)
def test_the_words_of_a_language_are_those_of_its_rules(language, text, words):
    assert tokenizer_of(language)(text) == words.split()


@pytest.mark.parametrize("language", ["ar", "de", "el", "fr", "he", "hi", "hu", "tr", "uk", "zh"])
def test_words_of_spacy_are_its_tokens_without_white_space(language):
    text = "Das  3 000\u202f€, z.B. „x“\u00a0? (a/b) 他们。 वे थे। لعبوا، l'été 10km"
    ours = tokenizer_of(language)(text)
    tokens = [token.text for token in spacy.blank(language)(text)]
    assert ours == " ".join(tokens).split()
    assert "".join(ours) == "".join(text.split())


@pytest.mark.parametrize("language", ["qq", "DE", "german", "", "../de"])
def test_a_language_that_spacy_lacks_is_refused_with_those_it_has(language):
    with pytest.raises(ConfigurationError, match=f"found '{language}'.* da de .* xx has rules"):
        tokenizer_of(language)


def test_a_language_that_needs_another_package_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "sudachipy", None)
    with pytest.raises(ConfigurationError, match="more packages .*'ja' .*sudachipy"):
        tokenizer_of("ja")


@pytest.mark.parametrize("package", ["spacy", "nltk.tokenize"])
def test_without_a_package_the_error_names_it(monkeypatch, package):
    for cached in (tokenizer._spacy, tokenizer._treebank):
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError, match=f"pip install {package.partition('.')[0]}\\."):
        treebank_words("They don't play.")


def test_escapes_of_the_treebank_are_undone():
    escaped = "-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- `` '' ` and\\/or \\*\\* -lrb- \\ 's 2\u00a01\\/2"
    plain = "( ) [ ] { } \" \" ' and/or ** -lrb- \\ 's 2\u00a01/2"
    assert [plain_word(word) for word in escaped.split(" ")] == plain.split(" ")
