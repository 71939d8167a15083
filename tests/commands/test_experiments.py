from functools import partial
from pathlib import Path

from elmo_plugin.util.files import shipped
from tests.commands import running

run = partial(running.run, "elmo-experiments")
failure = partial(running.failure, "elmo-experiments")


def contents(folder: Path):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*sonnet")}


def test_the_copy_holds_every_experiment_and_library(tmp_path, capsys):
    run(tmp_path / "mine")
    copied = contents(tmp_path / "mine")
    assert copied == contents(shipped("experiments"))
    assert not (tmp_path / "mine/results").exists()
    number = sum(n.suffix == ".jsonnet" and n.parts[0] != "studies" for n in copied)
    assert f"{tmp_path / 'mine'}: {number} experiments. " in capsys.readouterr().out
    run(tmp_path / "studies/mine")
    assert f"{tmp_path / 'studies/mine'}: {number} experiments. " in capsys.readouterr().out


def test_a_folder_that_holds_files_is_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    for out in (tmp_path, tmp_path / "mine"):
        assert f"{out} exists; expected a folder that is new or empty." in failure(out)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
