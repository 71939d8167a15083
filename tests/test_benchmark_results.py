"""Rows of benchmark results, their file, and the table that is made of it."""

import json
import math
from dataclasses import asdict

import pytest
import torch

from tests.benchmark_scripts import FOLDER, make_row, modules

common, table = modules["common"], modules["table"]
Row = common.Row
KEYS = "name unit ours peer ratio share_of_limit floor aim machine versions date".split()


def test_a_row_has_the_keys_that_it_should_have():
    entry = json.loads(json.dumps(asdict(Row("name", "s", 2.0))))
    assert list(entry) == KEYS
    assert [key for key, value in entry.items() if value is None] == KEYS[3:8]
    assert list(entry["versions"]) == ["python", "torch", "allennlp", "elmo_plugin"]
    assert entry["machine"].endswith(("core", "cores")) or torch.cuda.is_available()
    assert Row.from_dict(entry) == Row("name", "s", 2.0)


@pytest.mark.parametrize(
    "requirement, is_met",
    [
        (">= 2x", True),
        (">= 2.01x", False),
        ("<= 2x", True),
        ("<= 1.25x", False),
        (">= 85 % of limit", True),
        (">= 85.5 % of limit", False),
        ("<= 6 tokens/s", True),
        ("<= 5.9 tokens/s", False),
        (">= 60,000 tokens/s", False),
        (">= 1e-5 tokens/s", True),
    ],
)
def test_a_requirement_is_of_the_ratio_the_share_or_the_figure_itself(requirement, is_met):
    assert make_row(share_of_limit=0.85).meets(requirement) is is_met


@pytest.mark.parametrize(
    "figures, message",
    [
        ({"ours": math.nan}, "`ours` between -inf and inf, found nan"),
        ({"peer": 0.0}, "`peer` between 0.0 and inf, found 0.0"),
        ({"share_of_limit": -1.0}, "`share_of_limit` between 0.0 and inf, found -1.0"),
        *(
            ({"floor": requirement}, "a requirement of a figure .* found")
            for requirement in (">= 85 % of limit", "<= 0.3 s", "2x", "> 2x", ">= twice")
        ),
    ],
)
def test_an_impossible_figure_or_requirement_is_refused(figures, message):
    with pytest.raises(ValueError, match=f"row: expected {message}"):
        make_row(**figures)


def test_rows_take_the_place_of_those_of_their_name(tmp_path):
    path = tmp_path / "results.json"
    common.merge_rows(path, [make_row("a", 1.0), make_row("b", 2.0)])
    common.merge_rows(path, [make_row("c", 3.0), make_row("a", 4.0)])
    assert [(row.name, row.ours) for row in common.read_rows(path)] == [
        ("a", 4.0),
        ("b", 2.0),
        ("c", 3.0),
    ]


def test_runs_take_turns_and_the_first_turn_does_not_count():
    calls = []
    runs = {name: lambda turn, name=name: calls.append((turn, name)) for name in "ab"}
    seconds = common.by_turns(runs, 2)
    assert calls == [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a"), (2, "b")]
    assert {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}
    assert common.median_rate([1.0, 2.0, 4.0], [10, 10, 100]) == 10.0


def test_a_text_that_is_too_short_or_missing_is_named(tmp_path):
    path = tmp_path / "text.txt"
    with pytest.raises(SystemExit, match="text.txt does not exist"):
        common.read_sentences(path, 1)
    path.write_text("a b\n\nc\n")
    assert sorted(common.read_sentences(path, 2)) == [["a", "b"], ["c"]]
    with pytest.raises(SystemExit, match="expected at least 3 sentences, found 2. Name a longer"):
        common.read_sentences(path, 3)


def test_the_table_says_what_is_met():
    rows = [
        make_row("fast", 1234.5, 1000.0, floor=">= 1.2x", aim=">= 2x", share_of_limit=0.506),
        make_row("alone", 0.012345, None, floor="<= 0.3 tokens/s", date="2021-01-01"),
    ]
    assert table.render(rows).splitlines() == [
        "a machine; python 3, torch 2; 2020-02-02:",
        "",
        *table.HEAD,
        "| fast | tokens/s | 1,234 | 1,000 | 1.23x | 51% | >= 1.2x, met | >= 2x, **missed** |",
        "",
        "a machine; python 3, torch 2; 2021-01-01:",
        "",
        *table.HEAD,
        "| alone | tokens/s | 0.0123 |  |  |  | <= 0.3 tokens/s, met |  |",
        "",
        "Floors met: 2 of 2.",
        "",
        "Aims met: 0 of 1. Missed: fast.",
    ]


def test_the_published_table_is_that_of_the_published_results(tmp_path):
    results, readme = FOLDER / "results.json", tmp_path / "README.md"
    if not results.exists():
        pytest.skip("nothing has been measured yet")
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    readme.write_text(text, encoding="utf-8")
    table.update(readme, common.read_rows(results))
    assert readme.read_text(encoding="utf-8") == text
