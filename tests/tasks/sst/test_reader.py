import pytest
from allennlp.common.checks import ConfigurationError

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.tasks.sst import TextReader

TREES = """\
(4 (2 This) (4 (2 (2 quiet) (2 film)) (4 (2 is) (4 (2 a) (4 gem)))))
(2 (2 Some) (2 (2 do) (2 not)))
(0 Dull)
"""


@pytest.fixture
def read(tmp_path):
    def read(text=TREES, **settings):
        path = tmp_path / "x.txt"
        path.write_text(text, encoding="utf-8")
        return [contents(instance) for instance in TextReader(**settings).read(path)]

    return read


def contents(instance):
    return " ".join(token.text for token in instance["tokens"]), instance["label"].label


def test_an_instance_holds_tokens_label_and_both_for_the_reader_of_answers(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(TREES)
    instance = next(iter(TextReader().read(path)))
    words = ["This", "quiet", "film", "is", "a", "gem"]
    assert set(instance.fields) == {"tokens", "label", "metadata"}
    assert [token.text for token in instance["tokens"]] == words
    assert instance["label"].label == "very positive"
    assert instance["metadata"].metadata == {"words": words, "label": "very positive"}


def test_without_a_number_only_sentences_are_read(read):
    assert read() == [
        ("This quiet film is a gem", "very positive"),
        ("Some do not", "neutral"),
        ("Dull", "very negative"),
    ]


def test_phrases_of_so_many_words_are_read_and_every_sentence(read):
    assert read(min_phrase_tokens=3) == [
        ("This quiet film is a gem", "very positive"),
        ("quiet film is a gem", "very positive"),
        ("is a gem", "very positive"),
        ("Some do not", "neutral"),
        ("Dull", "very negative"),
    ]
    assert len(read(min_phrase_tokens=1)) == TREES.count("(")
    assert read(min_phrase_tokens=100) == read()


def test_two_classes_join_degrees_and_leave_neutral_phrases_out(read):
    lines = "".join(f"({label} word{label})\n" for label in range(5))
    assert read(lines, granularity="2-class") == [
        ("word0", "negative"),
        ("word1", "negative"),
        ("word3", "positive"),
        ("word4", "positive"),
    ]
    assert ("Some do not", "neutral") not in read(granularity="2-class", min_phrase_tokens=2)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"granularity": "3-class"}, "one of 5-class, 2-class, found '3-class'"),
        ({"granularity": ["5-class"]}, r"found \['5-class'\]"),
        ({"min_phrase_tokens": 0}, "`min_phrase_tokens` of at least 1, found 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        TextReader(**settings)
