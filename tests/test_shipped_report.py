"""The report and the tables of the pages show the results in `experiments/results`."""

import json
import re
import runpy
import shutil
from pathlib import Path

import pytest

from elmo_plugin.analysis.studies.comparison import shares
from elmo_plugin.analysis.studies.findings import has_too_few_epochs, note_epochs
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.util.errors import ConfigurationError
from tests.benchmark_scripts import modules
from tests.commands.running import run
from tests.guide import PROJECT

FOLDER = "experiments/results"
# Beside a page for each study, those with the summary of the main results.
MAIN = ["../../README.md", "main.md"]
STUDIES = sorted(path.parent.name for path in (PROJECT / FOLDER).glob("*/results.json"))


def shown(path):
    """The text of a page without its pictures."""
    return re.sub(r"\s*<[^>]+>\s*", "\n", path.read_text(encoding="utf-8")).split("\n")


def test_the_page_is_that_of_the_kept_results(tmp_path, monkeypatch):
    shutil.copytree(PROJECT / FOLDER, tmp_path / FOLDER)
    # The page names its files.
    monkeypatch.chdir(tmp_path)
    run("elmo-report", FOLDER, "--title", "ELMo on open corpora: results")
    assert shown(tmp_path / FOLDER / "report.html") == shown(PROJECT / FOLDER / "report.html")


@pytest.mark.parametrize("page", [*MAIN, *(f"{name}.md" for name in STUDIES)])
def test_the_tables_of_a_page_are_those_of_the_kept_results(page, tmp_path):
    text = (PROJECT / "docs/results" / page).read_text(encoding="utf-8")
    copy = tmp_path / "README.md"
    copy.write_text(text, encoding="utf-8")
    studies = sorted(set(re.findall("<!-- (?:study|summary) (\\w+) -->", text)))
    assert studies == ["headlines" if page in MAIN else Path(page).stem]
    # Each table was replaced by the same one.
    emptied = re.sub(r"(<!-- (?:study|summary|gaps) \w+ -->\n\n)[^<]*", r"\1old\n\n", text)
    assert "old\n\n<!-- /" in emptied
    copy.write_text(emptied, encoding="utf-8")
    runpy.run_path(str(PROJECT / "scripts/update_tables.py"))["update"](PROJECT / FOLDER, copy)
    assert copy.read_text(encoding="utf-8") == text


def test_the_table_of_peers_is_that_of_the_kept_results():
    content = json.loads((PROJECT / FOLDER / "peers.json").read_text(encoding="utf-8"))
    scores = content["scores"]
    assert modules["peer_scores"].with_findings(scores) == content
    text = (PROJECT / "docs/results/peers.md").read_text(encoding="utf-8")
    table = modules["peer_scores"].table(scores)
    assert f"<!-- peers -->\n\n{table}\n\n<!-- /peers -->" in text


def test_the_studies_with_too_few_epochs_are_those_of_the_text():
    epochs = {}
    studies = [Results(PROJECT / FOLDER / name / "results.json") for name in STUDIES]
    for results in studies:
        note_epochs(results, epochs)
    found = {
        (row.name, f"{100 * share.fraction:g} %")
        for results in studies
        for row in results.rows
        for share in shares(results, row)
        if row.compare and has_too_few_epochs(share, epochs.get(row.name, 0))
    }
    assert found == {("SRL", "30 %"), ("SNLI", "10 %"), ("SNLI", "20 %")}
    text = " ".join((PROJECT / "docs/results/README.md").read_text(encoding="utf-8").split())
    (sentence,) = re.findall(r"\*undecided \(too few epochs\)\*.*? - Numbers", text)
    assert all(f"{name} on {share}" in sentence for name, share in found)


@pytest.mark.parametrize(
    "text",
    [
        "nothing\n",
        "<!-- study a -->\n<!-- study b -->\n<!-- /study -->\n",
        "<!-- study a -->\n<!-- /study -->\n<!-- study a -->\n",
    ],
)
def test_a_page_without_the_marks_is_refused(tmp_path, text):
    page = tmp_path / "README.md"
    page.write_text(text)
    with pytest.raises(ConfigurationError, match="expected one line <!-- study a --> and a line"):
        modules["common"].replace_tables(page, "<!-- study a -->", "<!-- /study -->", "tables")
    assert page.read_text() == text
