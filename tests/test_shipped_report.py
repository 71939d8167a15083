"""`experiments/results/report.html` shows the results that are kept there."""

import re
import shutil

from tests.commands.running import run
from tests.guide import PROJECT

FOLDER = "experiments/results"


def shown(path):
    """The text of a page without its pictures."""
    text = re.sub(r"<svg.*?</svg>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s*<[^>]+>\s*", "\n", text).split("\n")


def test_the_page_is_that_of_the_kept_results(tmp_path, monkeypatch):
    shutil.copytree(PROJECT / FOLDER, tmp_path / FOLDER)
    # The page names its files.
    monkeypatch.chdir(tmp_path)
    run("elmo-report", FOLDER, "--title", "ELMo on open corpora: results")
    assert shown(tmp_path / FOLDER / "report.html") == shown(PROJECT / FOLDER / "report.html")
