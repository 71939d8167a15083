"""CoNLL-2012 as it is written for the scorers, and the command that does so."""

import random
import runpy
import sys

import pytest

from elmo_plugin.corpora.conll2012 import (
    Mention,
    format_coreference,
    format_propositions,
    read_sentences,
)

from .test_conll2012 import CORPORA, INSTANCE, ROOT, mentions_of, rows


def test_coreference_by_hand():
    words = ["Anna", "lost", "her", "keys", "."]
    mentions = [Mention(1, 2, 3), Mention(0, 2, 2), Mention(0, 0, 0)]
    blank = "\t-\t*\t-\t-\t-\t-\t*\t"
    expected = [
        "#begin document (mz/a); part 002",
        f"mz/a\t2\t0\tAnna{blank}(0)",
        f"mz/a\t2\t1\tlost{blank}-",
        f"mz/a\t2\t2\ther{blank}(1|(0)",
        f"mz/a\t2\t3\tkeys{blank}1)",
        f"mz/a\t2\t4\t.{blank}-",
        "",
        f"mz/a\t2\t0\tNo{blank}-",
        "",
        "#end document",
    ]
    text = format_coreference("mz/a", 2, [words, ["No"]], [mentions, []])
    assert text == "\n".join(expected) + "\n"
    line = "#begin document (a); part 0 "
    assert format_coreference("a", 0, [["x"]], [[]], line).splitlines()[0] == line


def test_words_that_look_like_mentions_are_none_to_the_scorer():
    text = format_coreference("a", 0, [["8)", "(7)"]], [[Mention(1, 0, 1)]])
    # It takes what follows a line's last tab.
    assert [line.split("\t")[-1] for line in text.splitlines()[1:3]] == ["(1", "1)"]


def crosses(mention, other):
    return (
        mention.start < other.start <= mention.end < other.end
        or other.start < mention.start <= other.end < mention.end
    )


def test_mentions_read_back_are_the_same(write):
    """Those of a cluster do not cross: the format cannot represent them."""
    for seed in range(30):
        draw = random.Random(seed)
        num_words, drawn = draw.randint(1, 8), []
        for _ in range(draw.randint(0, 12)):
            start = draw.randrange(num_words)
            mention = Mention(draw.randrange(3), start, draw.randrange(start, num_words))
            same = [other for other in drawn if other.cluster_id == mention.cluster_id]
            if mention not in drawn and not any(crosses(mention, other) for other in same):
                drawn.append(mention)
        words = [f"w{number}" for number in range(num_words)]
        path = write(format_coreference("a", 0, [words, words], [drawn, []]))
        assert list(map(set, mentions_of(path))) == [set(drawn), set()], seed


def test_propositions_by_hand():
    text = format_propositions(
        4,
        [(3, "fall"), (1, "see")],
        [["O", "O", "I-A1", "B-V"], ["I-A0", "B-V", "B-A1", "I-A1"]],
    )
    assert text == "- (A0*) *\nsee (V*) *\n- (A1* (A1*)\nfall *) (V*)\n\n"
    assert format_propositions(2, [], []) == "-\n-\n\n"


def test_propositions_read_back_are_the_same_tags(write):
    for path in (CORPORA / "srl/train.gold_conll", CORPORA / "srl/dev.gold_conll"):
        for sentence in read_sentences(path):
            tags = [frame.tags for frame in sentence.frames]
            predicates = [(frame.predicate_index, "x") for frame in sentence.frames]
            lines = format_propositions(len(sentence.words), predicates, tags).splitlines()[:-1]
            columns = list(zip(*map(str.split, lines)))
            # The k-th column is of the k-th line with a lemma.
            order = sorted(range(len(tags)), key=lambda k: predicates[k])
            written = rows(*map(" ".join, columns[1:]), coreference="- " * len(lines))
            (again,) = read_sentences(write(written))
            assert [frame.tags for frame in again.frames] == [tags[k] for k in order]
            assert [cell == "x" for cell in columns[0]].count(True) == len(set(predicates))


@pytest.mark.parametrize(
    "predicates, message",
    [
        ([(1, "a"), (1, "b")], r"predicates at different words below 2, found \[1, 1\]"),
        ([(2, "a")], r"predicates at different words below 2, found \[2\]"),
        ([(0, "-")], "lemmas without spaces, and not '-', found '-'"),
        ([(1, "ice cream")], "lemmas without spaces, and not '-', found 'ice cream'"),
    ],
)
def test_propositions_that_the_format_cannot_hold(predicates, message):
    with pytest.raises(ValueError, match=f"^expected {message}$"):
        format_propositions(2, predicates, [["O", "O"]] * 2)


def gold_propositions(monkeypatch, path):
    script = str(ROOT / "scripts/gold_propositions.py")
    monkeypatch.setattr(sys, "argv", [script, str(path)])
    runpy.run_path(script, run_name="__main__")


def test_the_command_writes_the_sentences_with_predicates(write, monkeypatch, capsys):
    gold_propositions(monkeypatch, write(INSTANCE + "\n" + rows(coreference="- -")))
    assert capsys.readouterr().out == (
        "- (ARG0* *\n- *) (ARG0*)\ngive (V* *\n- *) *\nrun (ARG1*) (V*)\n\n"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        (rows("(V*) *)"), ":2: expected an open bracket"),
        (rows("(V*)", "(V*)"), ":1: expected predicates at different words"),
        (None, "No such file"),
    ],
)
def test_the_command_fails_with_one_sentence(write, tmp_path, monkeypatch, capsys, text, message):
    path = write(text) if text else tmp_path / "none"
    with pytest.raises(SystemExit) as stopped:
        gold_propositions(monkeypatch, path)
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert message in error and str(path) in error and error.count("\n") == 1
