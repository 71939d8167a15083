import sys

from elmo_plugin.util import progress as module
from elmo_plugin.util.progress import progress


def test_without_a_terminal_progress_is_lines(monkeypatch, capsys):
    times = iter([0.0, 1.0, 6.0, 7.0, 20.0, 21.0, 24.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(times))
    with progress("sentences", total=4000) as advance:
        for _ in range(5):
            advance(600)
    assert capsys.readouterr().err.splitlines() == [
        "1,200 of 4,000 sentences, 200 per second",
        "2,400 of 4,000 sentences, 120 per second",
        "3,000 of 4,000 sentences, 125 per second",
    ]


def test_on_a_terminal_it_is_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("lines") as advance:
        advance(3)
    assert "3 lines" in capsys.readouterr().err


def test_without_tqdm_it_is_lines(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    with progress("lines") as advance:
        advance(3)
    assert capsys.readouterr().err.startswith("3 lines, ")
