from elmo_plugin.util import progress as module
from elmo_plugin.util.progress import progress


def test_progress_is_a_line_after_some_seconds(monkeypatch, capsys):
    times = iter([0.0, 1.0, 6.0, 7.0, 20.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(times))
    with progress("sentences", total=4000) as advance:
        for _ in range(4):
            advance(600)
    assert capsys.readouterr().err.splitlines() == [
        "1,200 of 4,000 sentences, 200 per second",
        "2,400 of 4,000 sentences, 120 per second",
    ]
