"""`allennlp elmo-export`, as AllenNLP starts it. What it writes is tested in `tests/bilm/files`."""

from functools import partial

import pytest
import torch
from allennlp.data import Vocabulary

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.tasks.bilm.model import BilmModel
from tests.bilm.trained import WORDS, StandIn, save_run, vocabulary
from tests.commands import running

ALL = ["options.json", "softmax.hdf5", "vocabulary.txt", "weights.hdf5"]
run = partial(running.run, "elmo-export")
failure = partial(running.failure, "elmo-export")


@pytest.fixture
def archive(make_bilm, tmp_path):
    """A language model's, forward and backward."""
    model = StandIn(make_bilm(seed=1), len(WORDS))
    return save_run(model, vocabulary(tmp_path), tmp_path / "run")[1]


def layers_in(folder, bilm):
    ids = bilm.characters.batch_ids([["They", "play"], ["chess"]])
    return load_bilm(folder / "options.json", folder / "weights.hdf5")(ids), bilm(ids)


def test_a_language_model_is_written_and_only_replaced_by_force(
    archive, make_bilm, tmp_path, capsys
):
    out = tmp_path / "out"
    run(archive, out)
    report = capsys.readouterr().out
    files = "options.json, weights.hdf5, softmax.hdf5, vocabulary.txt (0.1 MB, 7 words)."
    assert report == f"{out}: {files}\n"
    assert sorted(path.name for path in out.iterdir()) == ALL
    found, expected = layers_in(out, make_bilm(seed=1))
    assert torch.equal(found.layers, expected.layers)
    (out / "options.json").write_text("{}")
    assert "out already holds options.json, weights.hdf5" in failure(archive, out)
    assert (out / "options.json").read_text() == "{}"
    run(archive, out, "--force")
    assert BilmOptions.from_file(out / "options.json").num_layers == 3


def test_the_language_model_that_we_train_is_exported(make_options, tmp_path, capsys):
    options = make_options(bidirectional=False, projection_dim=None)
    model = BilmModel(vocabulary(tmp_path), options)
    folder, _ = save_run(model, model.vocab, tmp_path / "run")
    run(folder, tmp_path / "out")
    assert BilmOptions.from_file(tmp_path / "out" / "options.json") == model.bilm.options
    lines = (tmp_path / "out" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["<S>\t10", "</S>\t10", "<UNK>\t3", "the\t9"]


def test_layers_can_be_scaled(archive, make_bilm, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("They play\n\nchess\n")
    run(archive, tmp_path / "out", "--unit-layers", tmp_path / "text.txt")
    assert "Root mean squares before scaling: token layer " in capsys.readouterr().out
    output, _ = layers_in(tmp_path / "out", make_bilm())
    squares = output.layers[:, output.mask].square().mean(dim=(1, 2))
    assert squares[0].item() == pytest.approx(1, rel=1e-5)
    assert squares[1:].mean().item() == pytest.approx(1, rel=1e-5)


def test_the_bilm_of_a_task_has_no_softmax(make_bilm, tmp_path, capsys):
    tagger = torch.nn.ModuleDict({"left": StandIn(make_bilm())})
    folder, _ = save_run(tagger, Vocabulary(), tmp_path / "task")
    run(folder, tmp_path / "out", "--dtype", "float16")
    assert "out: options.json, weights.hdf5 (0.0 MB)." in capsys.readouterr().out
    assert not (tmp_path / "out" / "softmax.hdf5").exists()
