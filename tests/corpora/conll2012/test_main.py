import subprocess
import sys
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2012.__main__ import main

from . import INSTANCE, rows, write

ROOT = Path(__file__).parents[3]


def test_the_command_writes_the_sentences_with_predicates(tmp_path, capsys):
    main([str(write(tmp_path, INSTANCE + "\n" + rows(coreference="- -")))])
    assert capsys.readouterr().out == (
        "- (ARG0* *\n- *) (ARG0*)\ngive (V* *\n- *) *\nrun (ARG1*) (V*)\n\n"
    )


@pytest.mark.parametrize(
    "text, message",
    [
        (rows("(V*) *)"), ":2: expected an open argument bracket"),
        (rows("(V*)", "(V*)"), ":1: expected predicates at different words"),
        (None, "No such file"),
    ],
)
def test_the_command_fails_with_one_sentence(tmp_path, capsys, text, message):
    path = write(tmp_path, text) if text else tmp_path / "dev.gold_conll"
    with pytest.raises(SystemExit) as stopped:
        main([str(path)])
    assert stopped.value.code == 1
    error = capsys.readouterr().err
    assert message in error and str(path) in error and error.count("\n") == 1


def test_the_command_is_quiet_and_explains_itself():
    command = [sys.executable, "-m", "elmo_plugin.corpora.conll2012", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "> gold.props" in done.stdout
    assert "RuntimeWarning" not in done.stderr
