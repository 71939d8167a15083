"""A trained archive holds its biLM: the original files may move, change or vanish."""

import copy
import json
import shutil
from types import SimpleNamespace

import lmdb
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.data import DatasetReader, Token
from allennlp.models import load_archive

from elmo_plugin.bilm import save_weights
from elmo_plugin.elmo.cache.layer_cache import LayerCache
from tests.bilm.token_files import save_token_bilm
from tests.commands.running import run
from tests.tagger import repack, saved

TAGGED = "The###D play###N began###V\nThey###N play###V chess###N\nYes###X\n"
SENTENCE = ["They", "play", "naïve", "🙂", "chess"]


@pytest.fixture
def files(tmp_path, make_options, make_bilm):
    """Copies of a biLM's files that differ from the default's in every width and in words."""
    shape = dict(max_characters_per_token=9, n_layers=1)
    options, weights = tmp_path / "options.json", tmp_path / "weights.hdf5"
    options.write_text(json.dumps(make_options(**shape)))
    save_weights(make_bilm(**shape), weights)
    (tmp_path / "tagged.txt").write_text(TAGGED)
    return SimpleNamespace(options=options, weights=weights)


def config(files, tmp_path, **elmo):
    indexer = {"type": "elmo-characters"}
    if files is not None:
        elmo.update(options_file=str(files.options), weight_file=str(files.weights))
        indexer["options_file"] = str(files.options)
    return Params(
        {
            "dataset_reader": {"type": "sequence_tagging", "token_indexers": {"elmo": indexer}},
            "train_data_path": str(tmp_path / "tagged.txt"),
            "validation_data_path": str(tmp_path / "tagged.txt"),
            "model": {
                "type": "simple_tagger",
                "text_field_embedder": {
                    "token_embedders": {"elmo": {"type": "elmo-token-embedder", **elmo}}
                },
                "encoder": {"type": "pass_through", "input_dim": 12 if files else 32},
            },
            "data_loader": {"batch_size": 2},
            "trainer": {
                "num_epochs": 1,
                "optimizer": {"type": "sgd", "lr": 0.5},
                "cuda_device": -1,
                "run_confidence_checks": False,
            },
        }
    )


def train(files, tmp_path, **elmo):
    """The trained model's archive, and what it predicts."""
    model = train_model(config(files, tmp_path, **elmo), str(tmp_path / "run"))
    archive = load_archive(tmp_path / "run" / "model.tar.gz")
    for name, value in model.state_dict().items():
        assert torch.equal(archive.model.state_dict()[name], value), name
    return predict(archive)


def predict(archive):
    instance = archive.dataset_reader.text_to_instance([Token(word) for word in SENTENCE])
    archive.dataset_reader.apply_token_indexers(instance)
    return torch.tensor(archive.model.eval().forward_on_instance(instance)["logits"])


@pytest.mark.parametrize("trainable", [False, True])
def test_an_archive_needs_none_of_the_original_files(files, tmp_path, trainable):
    expected = train(files, tmp_path, trainable=trainable)
    archive = shutil.copy(tmp_path / "run" / "model.tar.gz", tmp_path / "kept.tar.gz")
    files.options.unlink()
    files.weights.unlink()
    assert torch.equal(predict(load_archive(tmp_path / "run")), expected)
    shutil.rmtree(tmp_path / "run")
    assert torch.equal(predict(load_archive(archive)), expected)


@pytest.mark.parametrize("kind", ["folder", "zip", "options.json"])
def test_an_archive_of_one_name_needs_nothing_outside(files, tmp_path, kind):
    folder = tmp_path / "elmo"
    folder.mkdir()
    for path in (files.options, files.weights):
        shutil.move(path, folder)
    places = {"folder": folder, "zip": folder.with_suffix(".zip"), "options.json": folder / kind}
    if kind == "zip":
        shutil.make_archive(str(folder), "zip", folder)
        shutil.rmtree(folder)
    params = config(files, tmp_path).as_dict()
    (embedder,) = params["model"]["text_field_embedder"]["token_embedders"].values()
    indexer = params["dataset_reader"]["token_indexers"]["elmo"]
    for part in (embedder, indexer):
        del part["options_file"]
        part["bilm"] = str(places[kind])
    del embedder["weight_file"]
    reader = DatasetReader.from_params(Params(copy.deepcopy(params["dataset_reader"])))
    model = train_model(Params(params), str(tmp_path / "run"))
    expected = predict(SimpleNamespace(model=model, dataset_reader=reader))
    (tmp_path / "empty").mkdir()
    for path in (folder, folder.with_suffix(".zip")):
        if path.exists():
            path.rename(tmp_path / "empty" / path.name)
    for name in ("run/model.tar.gz", "run"):
        assert torch.equal(predict(load_archive(tmp_path / name)), expected)


@pytest.mark.parametrize("cached", [False, True])
def test_an_archive_over_token_embeddings_needs_none_of_them(files, tmp_path, make_options, cached):
    folder = save_token_bilm(tmp_path / "tokens", make_options())
    files.options, files.weights = folder / "options.json", folder / "weights.hdf5"
    expected = train(files, tmp_path, cache=str(tmp_path / "cache") if cached else False)
    # Three words of the sentence are unknown.
    assert len(expected.unique(dim=0)) == 5
    archive = shutil.copy(tmp_path / "run" / "model.tar.gz", tmp_path / "kept.tar.gz")
    shutil.rmtree(tmp_path / "run")
    shutil.rmtree(folder)
    assert torch.equal(predict(load_archive(archive)), expected)


@pytest.mark.parametrize(
    "change",
    [
        torch.Tensor.half,
        torch.Tensor.bfloat16,
        lambda value: sum([value.float()] * 7) / 7,
    ],
)
def test_types_and_means_of_all_tensors_leave_an_archive_that_works(
    files, tmp_path, change, capsys
):
    expected = train(files, tmp_path)
    files.options.unlink()
    files.weights.unlink()
    state = torch.load(tmp_path / "run" / "best.th")
    changed = {"weights.th": saved({name: change(value) for name, value in state.items()})}
    archive = repack(tmp_path / "run" / "model.tar.gz", tmp_path / "a.tar.gz", files=changed)
    torch.testing.assert_close(predict(load_archive(archive)), expected, atol=0.01, rtol=0.01)
    run("evaluate", archive, tmp_path / "tagged.txt", "--output-file", tmp_path / "metrics.json")
    assert "accuracy" in json.loads((tmp_path / "metrics.json").read_text())


def test_allennlp_compares_two_archives(files, tmp_path, capsys):
    train(files, tmp_path)
    weights = f"{tmp_path}/run/model.tar.gz!weights.th"
    changed = torch.load(tmp_path / "run" / "best.th")
    changed["tag_projection_layer._module.bias"] += 1
    torch.save(changed, tmp_path / "changed.th")
    capsys.readouterr()
    run("diff", weights, tmp_path / "changed.th")
    found = capsys.readouterr().out.splitlines()
    assert [line for line in found if "options_json" in line and "!" not in line]
    (line,) = [line for line in found if "distance" in line]
    assert "tag_projection_layer._module.bias" in line and "= 1.0000" in line


def test_an_archive_does_not_read_files_that_changed(files, tmp_path, make_options):
    expected = train(files, tmp_path)
    files.weights.write_text("no weights at all")
    for content in ("no options at all", json.dumps(make_options(n_layers=4, projection_dim=3))):
        files.options.write_text(content)
        assert torch.equal(predict(load_archive(tmp_path / "run" / "model.tar.gz")), expected)


def test_an_archive_of_the_default_bilm_goes_to_a_machine_with_another(
    files, tmp_path, monkeypatch
):
    expected = train(None, tmp_path)
    for name, path in (("ELMO_OPTIONS", files.options), ("ELMO_WEIGHTS", files.weights)):
        monkeypatch.setenv(name, str(path))
    assert torch.equal(predict(load_archive(tmp_path / "run" / "model.tar.gz")), expected)
    files.options.unlink()
    assert torch.equal(predict(load_archive(tmp_path / "run" / "model.tar.gz")), expected)


def test_the_bilm_alone_can_have_a_learning_rate_of_its_own(files, tmp_path, make_bilm):
    params = config(files, tmp_path, trainable=True).as_dict()
    params["trainer"]["optimizer"]["parameter_groups"] = [[["bilm"], {"lr": 0.0}]]
    model = train_model(Params(params), str(tmp_path / "run"))
    elmo = model.text_field_embedder.token_embedder_elmo
    expected = make_bilm(max_characters_per_token=9, n_layers=1)
    for name, parameter in expected.named_parameters():
        assert torch.equal(elmo.bilm.get_parameter(name), parameter)
    assert elmo.mixes[0].gamma != 1


def test_an_archive_works_without_its_cache_and_fills_it_again(files, tmp_path):
    cache = tmp_path / "cache"
    expected = train(files, tmp_path, cache=str(cache))
    (before,) = cache.iterdir()
    LayerCache.close_all()
    shutil.rmtree(cache)
    assert torch.equal(predict(load_archive(tmp_path / "run" / "model.tar.gz")), expected)
    # The weights in the archive are the same biLM.
    assert list(cache.iterdir()) == [before]
    LayerCache.close_all()
    with lmdb.open(str(before), readonly=True) as store:
        assert store.stat()["entries"] > 0
