import json
import re
from functools import partial

import pytest

from tests.commands import running
from tests.guide import FIXTURES

QUERY = "They walked along the [bank] of the river ."
LINES = ["The play began .", "", "a * b | [c] _d_ <e> f the bank", "They play chess ."]

run = partial(running.run, "elmo-neighbours")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture
def index(text, tmp_path, capsys):
    run("build", text, tmp_path / "index")
    capsys.readouterr()
    return tmp_path / "index"


def test_build_says_what_it_wrote(text, tmp_path, capsys):
    run("build", text, tmp_path / "index", "--layers", 1)
    assert f"{tmp_path}/index: 18 contexts of 4 lines, 0.0 MB." in capsys.readouterr().out
    run("build", text, tmp_path / "index", "--layers", 1)
    assert "4 lines (4 of them earlier)" in capsys.readouterr().out


def test_contexts_are_printed_with_their_word_marked(index, capsys):
    run("query", index, QUERY, "The play [began] .", "--top-k", 1)
    first, second = capsys.readouterr().out.split("They walked")[1].split("The play [began] .\n")
    lines = first.splitlines()
    assert lines[0] == " along the [bank] of the river ."
    assert lines[1] == "  layer 1" and lines[3] == "  layer 2"
    for line in (lines[2], lines[4]):
        cosine, number, shown = re.fullmatch(r"    (\S+)  line (\d): (.*)", line).groups()
        assert -1 <= float(cosine) <= 1
        marked = [
            LINES[int(number) - 1].replace(word, f"[{word}]")
            for word in LINES[int(number) - 1].split()
        ]
        assert shown in marked


def test_options_may_stand_anywhere(index, capsys):
    shown = set()
    options = ["--top-k", 1]
    for arguments in ([index, QUERY, *options], [index, *options, QUERY], [*options, index, QUERY]):
        run("query", *arguments)
        shown.add(capsys.readouterr().out)
    assert len(shown) == 1


def test_json_lines_hold_words_and_positions(index, capsys):
    run("query", index, QUERY, "They [play]", "--format", "jsonl", "--top-k", 2)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["words"][first["position"]] == "bank" and second["words"] == ["They", "play"]
    assert list(first["layers"]) == ["1", "2"]
    for contexts in first["layers"].values():
        assert [list(each) for each in contexts] == [["cosine", "line", "position", "words"]] * 2
        assert contexts[0]["cosine"] >= contexts[1]["cosine"]
        for each in contexts:
            assert LINES[each["line"] - 1].split() == each["words"]


def test_queries_are_read_from_a_file(index, tmp_path, capsys):
    (tmp_path / "queries.txt").write_text(f"{QUERY}\n\nThey [play] .\n")
    run("query", index, "--file", tmp_path / "queries.txt")
    from_file = capsys.readouterr().out
    run("query", index, QUERY, "They [play] .")
    assert capsys.readouterr().out == from_file
    assert from_file.count("layer 1") == 2


def test_the_queries_that_ship_mark_a_word_in_two_sentences_each(index, capsys):
    run("query", index, "--file", FIXTURES / "queries/senses.txt", "--format", "jsonl")
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    words = [each["words"][each["position"]] for each in found]
    assert words[::2] == words[1::2] and len(set(words)) == 10
