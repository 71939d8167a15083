import json
import re
from base64 import b64encode
from copy import deepcopy
from html import unescape
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from elmo_plugin.commands.main import main
from tests.analysis.studies.scores import results, study
from tests.commands.running import run


def parsed(text):
    """The names of the tags of a page, its ids, links, and the cells of its tables."""
    return SimpleNamespace(
        tags=re.findall(r"<(\w+)", text),
        ids=re.findall(r' id="([^"]*)"', text),
        links=re.findall(r' (?:src|href)="([^"]*)"', text),
        cells=[unescape(cell) for cell in re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", text)],
    )


def accuracy(value):
    return {"overall": value, "interval": [value - 0.01, value + 0.01], "unseen": None}


TAGS = {
    "tag": "xpos",
    "l2": 1e-4,
    "command": "elmo probe pos --tag xpos",
    "scores": [
        {
            "representation": "biLM",
            "layer": f"layer {n}",
            "dev": accuracy(0.9),
            "test": accuracy(v),
            "from_previous": change,
        }
        for n, v, change in (
            (1, 0.912, None),
            (2, 0.905, {"value": -0.007, "interval": [-0.009, 0.001]}),
        )
    ],
}
SENSES = {
    "num_senses_in_training": 3,
    "scores": [
        {
            "representation": name,
            "layer": layer,
            "interval": [0.6, 0.7],
            "scores": {"tales": {"f1": 0.5}, "all": {"f1": f1}},
        }
        for name, layer, f1 in (("first sense", "", 0.648), ("biLM", "layer 2", 0.62))
    ],
}


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    (folder / "table1").mkdir(parents=True)
    made = study(("baseline", 90.15), ("ELMo <b>", 92.22), rows=("NER", "SRL"), fractions=(0.1, 1))
    results(folder / "table1/results.json", made, [0.5, 0.52, 0.6, 0.61, 0.7]).save()
    for name, content in (("tags", TAGS), ("senses", SENSES)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    # Nothing to report.
    (folder / "other.json").write_text('{"a": [1, 2]}')
    (folder / "broken.json").write_text("{")
    # Of other programs, with names that ours have, too.
    (folder / "mix.json").write_text('{"gamma": 1.0, "weights": [1]}')
    (folder / "mixes.json").write_text('[{"gamma": 1.0, "weights": [1]}]')
    (folder / "run.json").write_text('{"checkpoint": "a", "tokens": 5}')
    (folder / "rows.json").write_text('{"runs": 3, "rows": 100}')
    (folder / "settings.json").write_text('{"tag": "upos", "l2": 0.1}')
    (folder / "deep.json").write_text("[" * 100_000)
    return folder


def test_the_page_has_every_result_and_needs_nothing_else(out, capsys):
    run("elmo-report", out, "--title", "Mine & yours")
    assert "3 sections" in capsys.readouterr().out
    text = (out / "report.html").read_text()
    page = parsed(text)
    assert "<title>Mine &amp; yours</title>" in text
    # The verdicts, and a section per file.
    assert page.tags.count("section") == 4 and page.tags.count("table") == 3
    assert page.tags.count("img") == 3 and "script" not in page.tags
    assert "ELMo &lt;b&gt;" in text
    pictures = [link for link in page.links if link.startswith("data:image/svg+xml;base64,")]
    assert len(pictures) == 3 and "http" not in re.sub(r'"data:[^"]*"', "", text)
    assert {link for link in page.links if link not in pictures} == {f"#{i}" for i in page.ids}
    numbers = "91.20 97.3 64.8 65.9 92.22".split()
    for number in (*numbers, "-0.70 (-0.90 to +0.10)", "51.00 ± 1.41"):
        assert number in page.cells, number
    assert "elmo probe pos --tag xpos" in text
    first, *titles = re.findall("<h2>(.*)</h2>", text)
    # The paper's tables come before other titles.
    assert first == "What holds" and [title[:7] for title in titles] == [
        "Table 5",
        "Table 6",
        "A title",
    ]
    assert "without a score" not in text
    # A row without scores has no picture.
    assert "<figcaption>NER</figcaption>" in text and "<figcaption>SRL</figcaption>" not in text


def test_each_picture_is_written_as_a_file_too(out, tmp_path):
    run("elmo-report", out, "--pictures", tmp_path / "pictures")
    assert {path.name for path in (tmp_path / "pictures").iterdir()} == {
        "senses-f1-of-all-words.svg",
        "table1-ner.svg",
        "tags-accuracy-on-test.svg",
    }
    picture = (tmp_path / "pictures/table1-ner.svg").read_bytes()
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    # 4.5 times 2.8 inches.
    assert (root.get("width"), root.get("height")) == ("324pt", "201.6pt")
    assert b64encode(picture).decode() in (out / "report.html").read_text()


def test_names_are_drawn_as_they_are_and_leave_room_for_the_plot(tmp_path, recwarn):
    tags = deepcopy(TAGS)
    tags["scores"][0]["layer"] = "cost$5_to_$10"
    tags["scores"][1]["layer"] = "long " * 40
    (tmp_path / "tags.json").write_text(json.dumps(tags))
    (tmp_path / "study").mkdir()
    made = study("$a_$", "b", rows=("US$ or A$_", "SRL"), fractions=(0.1, 1), seeds=(1,))
    results(tmp_path / "study/results.json", made, [0.5] * 8).save()
    run("elmo-report", tmp_path, "--pictures", tmp_path / "pictures")
    assert not [str(each.message) for each in recwarn if "layout" in str(each.message)]
    # Comments in the pictures have their texts.
    drawn = "".join(path.read_text() for path in (tmp_path / "pictures").iterdir())
    assert "cost$5_to_$10 -->" in drawn and "$a_$ -->" in drawn and "long long… -->" in drawn


def test_the_same_results_give_the_same_page(out):
    pages = []
    for _ in range(2):
        main(["report", str(out)])
        pages.append((out / "report.html").read_bytes())
    assert pages[0] == pages[1]


def page_of(folder, **files):
    """The text of the page of these files, without their suffix `.json`."""
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    run("elmo-report", folder)
    return (folder / "report.html").read_text()


CLAIMS = r"<em>(.*): (.*) better than (.*)</em> <strong>(.*)</strong>: (.*)</li>"


def test_the_page_begins_with_what_holds(tmp_path):
    made = study("baseline", "ELMo", "both", rows=("NER",), seeds=(1,))
    values = [0.5, 0.6, 0.65]
    samples = [[value + n / 1e5 for n in range(-50, 51)] for value in values]
    (tmp_path / "study").mkdir()
    results(tmp_path / "study/results.json", made, values, samples).save()
    text = page_of(tmp_path, tags=TAGS)
    verdicts, *sections = map(re.compile(CLAIMS).findall, text.split("<section id="))
    tags = ("xpos", "biLM, layer 2", "biLM, layer 1", "undecided", "-0.70 (-0.90 to +0.10)")
    elmo, both = (
        ("NER", model, "baseline", "holds", f"+{value:.2f} (+{value:.2f} to +{value:.2f})")
        for model, value in (("ELMo", 10), ("both", 15))
    )
    # All are as good on dev: the first one is there.
    assert verdicts == [tags, elmo] and sections == [[tags], [elmo, both]]


def test_other_programs_write_findings_and_tables(tmp_path):
    claim = {"where": "Pairs", "model": "b", "base": "a"}
    findings = [{**claim, "difference": [0.04, [0.02, 0.06]], "verdict": "holds"}]
    tables = [{"head": ["pairs", "a", "b"], "lines": [["islands", "50.0", "54.0"]]}]
    content = {"title": "Pairs <1>", "command": "make it", "findings": findings, "tables": tables}
    text = page_of(tmp_path, pairs=content)
    assert re.findall(CLAIMS, text)[0] == ("Pairs", "b", "a", "holds", "+4.00 (+2.00 to +6.00)")
    assert "54.0" in parsed(text).cells and "<h2>Pairs &lt;1&gt;</h2>" in text
    assert "Pairs &lt;1&gt;: Differences" in text and "<pre>make it</pre>" in text


def test_sections_of_the_same_title_are_told_apart_by_their_files(tmp_path):
    text = page_of(tmp_path, a=TAGS, b=TAGS)
    assert all(f"vectors ({tmp_path}/{name}.json)</a>" in text for name in ("a", "b"))


def test_tags_that_are_no_parts_of_speech_have_no_scores_of_the_paper(tmp_path):
    text = page_of(tmp_path, tags={**TAGS, "tag": "columns [1, 2]"})
    assert "Tags (columns [1, 2])" in text and "97.3" not in text and "Treebank" not in text
