"""`allennlp elmo-import`, as AllenNLP starts it. How it reads is in `tests/bilm/files`."""

import json
import shutil
from functools import partial

import numpy
import pytest
import torch
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.bilm.files.softmax import find_softmax
from tests.bilm.files.checkpoint_files import RECORDED, recorded, without_tensorflow
from tests.bilm.oracle import SlowBilm, assert_layers_equal, read_arrays
from tests.commands import running

ALL = ["options.json", "softmax.hdf5", "vocabulary.txt", "weights.hdf5"]
run = partial(running.run, "elmo-import")
failure = partial(running.failure, "elmo-import")


@pytest.fixture
def training(tmp_path, monkeypatch):
    """The folder of a training with two checkpoints, of which the last one has other values."""
    folder = shutil.copytree(RECORDED, tmp_path / "save")
    shutil.copy(folder / "model.ckpt-7.index", folder / "model.ckpt-12.index")
    (folder / "checkpoint").write_text('model_checkpoint_path: "/gone/model.ckpt-12"\n')
    later = {name: 2 * each for name, each in recorded().items()}
    checkpoints = {"model.ckpt-7": recorded(), "model.ckpt-12": later}
    without_tensorflow(monkeypatch, {str(folder / name): v for name, v in checkpoints.items()})
    return folder


def test_the_last_checkpoint_is_written_and_only_replaced_by_force(training, tmp_path, capsys):
    out = tmp_path / "out"
    run(training, out, "--vocabulary", training / "vocabulary.txt")
    files = "options.json, weights.hdf5, softmax.hdf5, vocabulary.txt (0.0 MB, 8 words)."
    assert capsys.readouterr().out == f"model.ckpt-12: {out}: {files}\n"
    assert sorted(path.name for path in out.iterdir()) == ALL
    weights = read_arrays(out / "weights.hdf5")
    assert numpy.array_equal(weights["char_embed"], 2 * recorded()["lm/char_embed"])
    assert json.loads((out / "options.json").read_text())["char_cnn"]["n_characters"] == 262
    assert "out already holds options.json, weights.hdf5" in failure(training, out)
    run(training / "model.ckpt-7.index", out, "--force", "--dtype", "float16")
    assert "model.ckpt-7: " in (report := capsys.readouterr().out)
    assert report.endswith("weights.hdf5 (0.0 MB). It has no softmax; --vocabulary adds it.\n")
    assert sorted(path.name for path in out.iterdir()) == ["options.json", "weights.hdf5"]
    found = read_arrays(out / "weights.hdf5")["char_embed"]
    assert numpy.array_equal(found, recorded()["lm/char_embed"].astype("float16"))


def test_a_refusal_is_one_sentence_and_writes_nothing(training, tmp_path):
    assert "model.ckpt-8.index: expected" in failure(
        training / "model.ckpt-8.index", tmp_path / "out"
    )
    (tmp_path / "words").write_text("<S>\n</S>\n<UNK>\nthe\n")
    message = failure(training, tmp_path / "out", "--vocabulary", tmp_path / "words")
    assert "expected a weight of shape (4, 3), the number of words" in message
    assert "words.txt does not exist" in failure(
        training, tmp_path / "out", "--vocabulary", tmp_path / "words.txt"
    )
    assert not (tmp_path / "out").exists()
    before = (training / "options.json").read_text()
    assert "save is part of the input; name another" in failure(training, training, "--force")
    assert (training / "options.json").read_text() == before


def test_perplexities_are_those_of_a_slow_loop(training, tmp_path, capsys):
    """Of the softmax over the hidden states: forward before, backward after each word."""
    out, sentences = tmp_path / "out", [["the", "play", "began"], ["chess", "unseen", "naïve"]]
    run(training / "model.ckpt-7.index", out, "--vocabulary", training / "vocabulary.txt")
    slow = SlowBilm(
        json.loads((out / "options.json").read_text()), read_arrays(out / "weights.hdf5")
    )
    words = (training / "vocabulary.txt").read_text(encoding="utf-8").split()
    losses = []
    for sentence in sentences:
        layers = slow.layers(sentence)[-1].numpy()
        ids = [words.index(each) if each in words else 2 for each in ["<S>", *sentence, "</S>"]]
        for hidden, target in [
            *zip(layers[:-1, :3], ids[1:]),
            *zip(layers[1:, 3:], ids[:-1]),
        ]:
            scores = recorded()["lm/softmax/W"] @ hidden + recorded()["lm/softmax/b"]
            losses.append(numpy.log(numpy.exp(scores).sum()) - scores[target])
    text = tmp_path / "text.txt"
    text.write_text("".join(" ".join(each) + "\n" for each in sentences), encoding="utf-8")
    files = ["--options-file", out / "options.json", "--weight-file", out / "weights.hdf5"]
    running.run("elmo-score", text, *files)
    expected = numpy.exp(numpy.mean(losses))
    assert f"Perplexity {expected:.4f}, " in capsys.readouterr().err


def test_a_forward_model_is_written_for_fine_tuning(training, tmp_path, monkeypatch, capsys):
    options = json.loads((training / "options.json").read_text())
    del options["bidirectional"]
    (training / "options.json").write_text(json.dumps(options))
    variables = {
        name.replace("RNN_0/", ""): each for name, each in recorded().items() if "RNN_1" not in name
    }
    without_tensorflow(monkeypatch, {str(training / "model.ckpt-12"): variables})
    run(training, tmp_path / "out", "--vocabulary", training / "vocabulary.txt")
    bilm = Bilm.from_pretrained(tmp_path / "out")
    assert not bilm.options.bidirectional
    assert find_softmax(tmp_path / "out/weights.hdf5", bilm.options).weight.shape == (8, 3)


def test_allennlp_s_elmo_computes_the_same_layers(training, tmp_path):
    run(training / "model.ckpt-7.index", tmp_path / "out")
    files = tmp_path / "out/options.json", tmp_path / "out/weights.hdf5"
    ids = batch_to_ids([["the", "play", "began"], ["chess"]])
    expected = torch.stack(_ElmoBiLm(*files)(ids)["activations"])
    assert_layers_equal(load_bilm(*files)(ids).layers, expected)
