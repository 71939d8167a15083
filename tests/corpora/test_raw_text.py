"""Raw text that is read as tokenised text is warned of, once; tokenised text never is."""

import logging

import pytest

from elmo_plugin.corpora import raw_text
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.corpora.tokenizer import tokenizer_of
from elmo_plugin.util.text_files import DecodedPath
from tests.guide import FIXTURES

RAW = {
    "en": "They played chess, not cards.\nDr. Reed of the U.S. said so!\nWas it late?",
    "de": "Sie spielten Schach, z.B. um drei Uhr.\n„Ja“, sagte er.\nUnd dann?",
    "fr": "Ils jouaient aux échecs, pas aux cartes.\nM. Dupont l'a dit.",
    "ru": "Они играли в шахматы, а не в карты.\nОн это сказал!",
    "el": "Έπαιζαν σκάκι, όχι χαρτιά.\nΤο είπε ο κ. Παππάς.",
    "uk": "Вони грали в шахи, а не в карти.",
    "ar": "لعبوا الشطرنج، لا الورق.\nهل كان الوقت متأخرا؟",
    "he": "הם שיחקו שחמט, לא קלפים.",
    "hi": "वे शतरंज खेलते थे।\nक्या देर हो गई थी?",
    "zh": "他们下棋，不打牌。\n他这样说。",
    "xx": "彼らはチェスをした。\n遅かったのか？",
}
TOKENISED = {
    "abbreviations": "Mr. Reed of the U.S. met Dr. No .\nIt was Reed Inc. and Co. of St. Louis",
    "without punctuation": "they play chess\nthey play",
    "names with a mark": "Yahoo! bought it .\nWho plays Jeopardy! today ?",
    "numbers": "1. They play\n2. It cost 3,000\n3. in 1999",
    "one abbreviation at the end in five": "a b .\n" * 5 + "of Acme Corp.",
    "a list of words": "the\n,\nCorp.\nMessrs.\nCalif.\n",
    "escapes": "He said : `` Go ! '' -LRB- so -RRB- &quot; x &quot;",
    "nothing": "",
}


@pytest.fixture
def num_warnings(monkeypatch, caplog, write):
    """How often a text is warned of."""

    def read(text, tokenize=None):
        raw_text._warn.cache_clear()
        caplog.clear()
        DigestedText([DecodedPath(str(write(text)), "strict", tokenize)]).read_all()
        assert all("--tokenize" in message for message in caplog.messages)
        return len(caplog.messages)

    caplog.set_level(logging.WARNING)
    yield read
    raw_text._warn.cache_clear()


@pytest.mark.parametrize("language", RAW)
def test_raw_text_of_a_language_is_warned_of_and_its_words_are_not(num_warnings, language):
    words = tokenizer_of(language)
    tokenised = "".join(f"{' '.join(words(line))}\n" for line in RAW[language].split("\n"))
    assert num_warnings(RAW[language]) == 1
    assert num_warnings(tokenised) == 0
    assert num_warnings(RAW[language], language) == 0


@pytest.mark.parametrize("text", TOKENISED.values(), ids=TOKENISED)
def test_tokenised_text_is_not_warned_of(num_warnings, text):
    assert num_warnings(text) == 0


def test_no_corpus_of_the_fixtures_is_warned_of(num_warnings):
    texts = [*FIXTURES.glob("corpora/lm/*/*.txt*"), *FIXTURES.glob("corpora/sst/*.txt")]
    assert len(texts) >= 7
    for text in texts:
        assert num_warnings(text.read_bytes()) == 0, text


@pytest.mark.parametrize("num_raw, expected", [(19, 0), (20, 1)])
def test_a_fifth_is_enough(num_warnings, num_raw, expected):
    text = "They are playing.\n" * num_raw + "They are playing .\n" * (100 - num_raw)
    assert num_warnings(text) == expected


def test_only_the_first_thousand_words_count(num_warnings):
    plain, raw = "a b c d\n", "They play chess, cards, dice.\n"
    assert num_warnings(plain * 249 + raw) == 1
    assert num_warnings(plain * 250 + raw) == 0


def test_one_warning_is_enough_for_many_texts(num_warnings, caplog, write):
    assert num_warnings(RAW["en"]) == 1
    DigestedText([write(RAW["de"]), write(RAW["en"], "other.txt")]).read_all()
    assert len(caplog.messages) == 1
