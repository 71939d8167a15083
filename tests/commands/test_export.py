"""`allennlp elmo-export`, as AllenNLP starts it."""

import resource
from functools import partial

import pytest
import torch
from allennlp.data import Vocabulary
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.tasks.bilm.model import BilmModel
from tests.bilm.oracle import assert_layers_equal
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


def test_a_language_model_becomes_files_that_allennlp_reads(archive, make_bilm, tmp_path, capsys):
    run(archive, tmp_path / "out")
    report = capsys.readouterr().out
    assert "out: options.json, weights.hdf5, softmax.hdf5, vocabulary.txt (0.1 MB, 7 words)." in (
        report
    )
    assert "cannot read" not in report
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ALL
    files = [str(tmp_path / "out" / name) for name in ("options.json", "weights.hdf5")]
    ids = batch_to_ids([["They", "play"], ["chess"]])
    expected = make_bilm(seed=1)(ids).layers
    assert torch.equal(load_bilm(*files)(ids).layers, expected)
    assert_layers_equal(torch.stack(_ElmoBiLm(*files)(ids)["activations"]), expected)


def test_the_language_model_that_we_train_is_exported(make_options, tmp_path, capsys):
    options = make_options(bidirectional=False, projection_dim=None)
    model = BilmModel(vocabulary(tmp_path), options)
    folder, _ = save_run(model, model.vocab, tmp_path / "run")
    run(folder, tmp_path / "out")
    assert "Elmo cannot read it: `bidirectional` is false." in capsys.readouterr().out
    found = BilmOptions.from_file(tmp_path / "out" / "options.json")
    assert found == model.bilm.options
    lines = (tmp_path / "out" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["<S>\t10", "</S>\t10", "<UNK>\t3", "the\t9"]


def test_layers_can_be_scaled(archive, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("They play\n\nchess\n")
    run(archive, tmp_path / "out", "--unit-layers", tmp_path / "text.txt")
    assert "Root mean squares before scaling: token layer " in capsys.readouterr().out
    files = [str(tmp_path / "out" / name) for name in ("options.json", "weights.hdf5")]
    ids = batch_to_ids([["They", "play"], ["chess"]])
    output = load_bilm(*files)(ids)
    squares = output.layers[:, output.mask].square().mean(dim=(1, 2))
    assert squares[0].item() == pytest.approx(1, rel=1e-5)
    assert squares[1:].mean().item() == pytest.approx(1, rel=1e-5)
    # AllenNLP reads the scaled clip, too.
    assert_layers_equal(torch.stack(_ElmoBiLm(*files)(ids)["activations"]), output.layers)


def test_the_bilm_of_a_task_has_no_softmax_and_may_need_a_name(make_bilm, tmp_path, capsys):
    tagger = torch.nn.ModuleDict({name: StandIn(make_bilm()) for name in ("left", "right")})
    folder, _ = save_run(tagger, Vocabulary(), tmp_path / "task")
    assert "holds 2 biLMs; name one of them: left.bilm, right.b" in failure(folder, tmp_path / "o")
    run(folder, tmp_path / "out", "--bilm", "left.bilm", "--dtype", "float16")
    assert "out: options.json, weights.hdf5 (0.0 MB)." in capsys.readouterr().out
    assert not (tmp_path / "out" / "softmax.hdf5").exists()


def test_files_in_the_way_need_force(archive, tmp_path):
    run(archive, tmp_path / "out")
    (tmp_path / "out" / "options.json").write_text("{}")
    assert "out already holds options.json, weights.hdf5" in failure(archive, tmp_path / "out")
    assert (tmp_path / "out" / "options.json").read_text() == "{}"
    run(archive, tmp_path / "out", "--force")
    assert BilmOptions.from_file(tmp_path / "out" / "options.json").num_layers == 3


def test_bad_input_ends_in_one_sentence_and_writes_nothing(archive, tmp_path):
    out = tmp_path / "out"
    assert "none.tar.gz does not exist. Expected a model.tar.gz" in failure("none.tar.gz", out)
    assert "holds no trained model" in failure(tmp_path, out)
    archive.write_bytes(archive.read_bytes()[:2000])
    assert "run.tar.gz cannot be read; it is damaged" in failure(archive, out)
    (tmp_path / "file").write_text("")
    assert "file is a file; expected a folder" in failure(archive, tmp_path / "file")
    assert not out.exists()


def test_a_full_disk_is_said_and_leaves_nothing(make_bilm, tmp_path):
    folder, _ = save_run(StandIn(make_bilm(dim=200)), Vocabulary(), tmp_path / "large")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        message = failure(folder, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "File too large" in message and "weights.hdf5" in message
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.unfinished").exists()


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    assert "allennlp elmo-export runs/bilm/model.tar.gz my-bilm" in capsys.readouterr().out
