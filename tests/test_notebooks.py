"""The notebooks in `examples` run, and the outputs that they keep are of their cells."""

import json
import os
import re
import subprocess
import sys

import pytest

from scripts.run_notebook import code_cells, digest
from tests.guide import PROJECT

NOTEBOOKS = sorted((PROJECT / "examples").glob("*.ipynb"))
PROGRAM = PROJECT / "scripts/run_notebook.py"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def run(notebook, folder):
    """Runs a notebook in a folder other than the project's, with what a user has."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ELMO_")}
    environment |= {"ELMO_CACHE": "", "PYTHONPATH": str(PROJECT), "TMPDIR": str(folder)}
    command = [sys.executable, PROGRAM, notebook, "--output", folder / "out.ipynb"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def kinds(notebook):
    """The kinds of output of each code cell: texts differ, because training rounds differently."""
    return [
        [(output["output_type"], *sorted(output.get("data", ()))) for output in cell["outputs"]]
        for cell in code_cells(notebook)
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_keeps(path, tmp_path):
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr[-5000:]
    assert kinds(read(tmp_path / "out.ipynb")) == kinds(read(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_outputs_are_of_its_cells(path):
    notebook = read(path)
    renew = f"python scripts/run_notebook.py examples/{path.name}"
    assert notebook["metadata"]["outputs_of"] == digest(notebook), f"Run it again: {renew}"
    numbers = [cell["execution_count"] for cell in code_cells(notebook)]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_sentence_stands_before_each_cell(path):
    kinds = [cell["cell_type"] for cell in read(path)["cells"]]
    assert kinds == ["markdown", *["markdown", "code"] * (len(kinds) // 2 - 1), "markdown"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_links_lead_to_files(path):
    text = "".join("".join(cell["source"]) for cell in read(path)["cells"])
    for target in re.findall(r"\]\(([^)\s#]+)", text):
        assert "://" in target or (path.parent / target).exists(), target


@pytest.mark.parametrize(
    "source", ["1 / 0", "%%bash\nfalse\ntrue", "print(", "%%writefile no/such/folder\ntext"]
)
def test_a_cell_that_fails_ends_the_run(source, tmp_path):
    cells = [
        {"cell_type": "code", "source": [text]} for text in (source, "open('reached', 'w').close()")
    ]
    path = tmp_path / "bad.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}}), encoding="utf-8")
    done = run(path, tmp_path)
    assert done.returncode == 1 and "Error" in done.stderr
    assert not (tmp_path / "reached").exists() and not (tmp_path / "out.ipynb").exists()
