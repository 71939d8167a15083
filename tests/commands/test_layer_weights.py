import json
from functools import partial

from tests.analysis.test_layer_weights import placed
from tests.commands import running

run = partial(running.run, "elmo-layer-weights")


def test_a_table_and_pictures_of_several_models(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, at in (("one", "both"), ("two", "input")):
        placed(tmp_path / name, at)
    run("one", "two", "--json", "weights.json", "--plot", "weights.svg", "weights.png")
    table = capsys.readouterr().out.splitlines()
    assert table[2] == "| one | elmo-srl | input | 0.090 | 0.245 | 0.665 | 2.000 |"
    assert [row.split(" | ")[2] for row in table[2:]] == ["input", "output", "input"]
    found = json.loads((tmp_path / "weights.json").read_text())
    assert [mix["archive"] for mix in found] == ["one", "one", "two"]
    assert [mix["gamma"] for mix in found] == [2.0, 3.0, 2.0]
    picture = (tmp_path / "weights.svg").read_text()
    assert "srl (one), output" in picture and "srl (two), input" in picture
    assert (tmp_path / "weights.png").read_bytes().startswith(b"\x89PNG")
