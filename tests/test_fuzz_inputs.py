"""`scripts/fuzz_inputs.py` finds obscure errors; a few of its inputs are read here."""

from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    import fuzz_inputs

    return fuzz_inputs


def test_damaged_inputs_are_read_or_refused_in_a_sentence(script):
    assert script.fuzz(100, seed=59, tasks=["ner"]) == []


def test_an_obscure_error_and_a_long_time_are_reported(script, tmp_path, monkeypatch):
    def wait(path):
        while True:
            pass

    (tmp_path / "text").write_text("a")
    monkeypatch.setattr(script, "SECONDS", 0.1)
    for read, kind in ((dict().__getitem__, KeyError), (wait, script.TooLong)):
        target = script.Target(tmp_path / "text", script.damage_lines, read)
        error = script.run_case(target, tmp_path / "case/text", b"b")
        assert isinstance(error, kind) and not (tmp_path / "case").exists()
