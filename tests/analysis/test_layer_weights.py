"""The weights of layers, read from archives whose scores are set by hand."""

import json
import math

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.modules import TokenEmbedder

from elmo_plugin.analysis.layer_weights import layer_weights
from elmo_plugin.elmo.placement import Placement
from elmo_plugin.elmo.scalar_mix import ScalarMix
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from tests.elmo.test_archive import config


class Holder(torch.nn.Module):
    """A module below the name that it has in a model."""

    def __init__(self, name, module):
        super().__init__()
        for part in reversed(name.split(".")[1:]):
            module, inner = torch.nn.Module(), module
            module.add_module(part, inner)
        self.add_module(name.split(".")[0], module)


def save(folder, name, module, model):
    folder.mkdir()
    torch.save(Holder(name, module).state_dict(), folder / "weights.th")
    (folder / "config.json").write_text(json.dumps({"model": model}))
    return folder


def placed(folder, at, **elmo):
    settings = {"type": "elmo-placement", "at": at, "elmo": elmo}
    placement = Placement.from_params(Params({**settings, "elmo": dict(elmo)}))
    for number, mix in enumerate(placement.elmo.mixes):
        if "fixed_weights" not in elmo:
            mix.layer_scores.data = torch.arange(len(mix.layer_scores)) * float(number + 1)
            mix.gamma.data.fill_(number + 2.0)
    return placement, save(
        folder, "placement", placement, {"type": "elmo-srl", "placement": settings}
    )


def softmax(*scores):
    total = sum(map(math.exp, scores))
    return pytest.approx([math.exp(score) / total for score in scores])


def test_each_place_has_its_weights_and_gamma(tmp_path):
    placement, archive = placed(tmp_path / "both", "both")
    first, second = layer_weights(archive)
    assert (first.at, second.at) == ("input", "output")
    assert first.weights == softmax(0, 1, 2) and first.gamma == 2.0
    assert second.weights == softmax(0, 2, 4) and second.gamma == 3.0
    assert first.model == "elmo-srl" and first.archive == str(archive)
    # Those of an epoch's metrics are the same.
    metrics = placement.elmo.epoch_metrics()
    assert [metrics[f"elmo_output_layer_{layer}"] for layer in range(3)] == second.weights
    assert metrics["elmo_input_gamma"] == 2.0 and len(metrics) == 8


@pytest.mark.parametrize(
    "at, elmo, weights, gamma",
    [
        ("output", {}, softmax(0, 1, 2), 2.0),
        ("input", {"layers": "last"}, [0, 0, 1], 2.0),
        ("input", {"layers": [0, 2]}, [*softmax(0, 1).expected], 2.0),
        ("input", {"fixed_weights": [0.5, 0.25, 0.25]}, [0.5, 0.25, 0.25], 1.0),
    ],
)
def test_layers_that_are_not_mixed_have_no_weight(tmp_path, at, elmo, weights, gamma):
    placement, archive = placed(tmp_path / "run", at, **elmo)
    (found,) = layer_weights(archive)
    assert (found.at, found.gamma) == (at, gamma)
    if elmo.get("layers") == [0, 2]:
        weights = pytest.approx([weights[0], 0.0, weights[1]])
    assert found.weights == weights
    mixed = [layer for layer, weight in enumerate(found.weights) if weight]
    names = [f"elmo_{at}_layer_{layer}" for layer in mixed]
    assert list(placement.elmo.epoch_metrics()) == [*names, f"elmo_{at}_gamma"]


def test_an_embedder_of_another_model_is_found_by_its_name(tmp_path):
    settings = {"type": "elmo-token-embedder", "layers": "last"}
    embedder = TokenEmbedder.from_params(Params(dict(settings)))
    model = {"type": "tagger", "text_field_embedder": {"token_embedders": {"elmo": settings}}}
    name = "text_field_embedder.token_embedder_elmo"
    (found,) = layer_weights(save(tmp_path / "run", name, embedder, model))
    assert found.weights == [0.0, 0.0, 1.0]
    assert found.at == f"{name}.mixes.0"
    # The model may be an ELMo itself.
    elmo = TokenEmbedder.from_params(Params({"type": "elmo-token-embedder"}))
    (tmp_path / "elmo").mkdir()
    torch.save(elmo.state_dict(), tmp_path / "elmo" / "best.th")
    (found,) = layer_weights(tmp_path / "elmo")
    assert (found.at, found.weights) == ("mixes.0", softmax(0, 0, 0))


def test_a_mix_of_other_vectors_is_left_out(tmp_path):
    settings = {"type": "elmo-token-embedder"}
    model = torch.nn.ModuleDict(
        {"other": ScalarMix(2), "elmo": TokenEmbedder.from_params(Params(dict(settings)))}
    )
    (found,) = layer_weights(save(tmp_path / "run", "parts", model, {"type": "tagger"}))
    assert found.at == "parts.elmo.mixes.0" and len(found.weights) == 3
    other = save(tmp_path / "other", "encoder", torch.nn.Linear(2, 2), {"type": "elmo-srl"})
    with pytest.raises(ConfigurationError, match="other has no layer weights: expected a model"):
        layer_weights(other)
    # The configuration of the model may be in another archive.
    _, archive = placed(tmp_path / "a", "input", layers="last")
    model = {"type": "from_archive", "archive_file": "b.tar.gz"}
    (archive / "config.json").write_text(json.dumps({"model": model}))
    with pytest.raises(ConfigurationError, match="does not say which layers its mix of 1 has"):
        layer_weights(archive)


def test_an_epoch_of_training_has_them_in_its_metrics_and_in_tensorboard(tmp_path):
    (tmp_path / "tagged.txt").write_text("They###N play###V chess###N\nYes###X\n")
    experiment = config(None, tmp_path)
    settings = {"type": "elmo-recoverable", "callbacks": ["tensorboard"], "num_epochs": 2}
    experiment["trainer"] = {**experiment["trainer"].as_dict(), **settings}
    train_model(experiment, tmp_path / "run")
    (trained,) = layer_weights(tmp_path / "run" / "model.tar.gz")
    epochs = [
        json.loads((tmp_path / "run" / f"metrics_epoch_{epoch}.json").read_text())
        for epoch in range(2)
    ]
    found = [
        [epoch[f"training_elmo_0_layer_{layer}"] for layer in range(3)]
        + [epoch["training_elmo_0_gamma"]]
        for epoch in epochs
    ]
    assert found[0] != found[1]
    best = json.loads((tmp_path / "run" / "metrics.json").read_text())["best_epoch"]
    assert found[best] == [*trained.weights, trained.gamma]
    (events,) = (tmp_path / "run" / "log" / "train").glob("events*")
    assert b"elmo_0_gamma" in events.read_bytes()


def test_a_packed_archive_has_its_weights_in_half_precision():
    (found,) = layer_weights(shipped("pretrained/tasks/ner/model.tar.gz"))
    assert len(found.weights) == 3 and sum(found.weights) == pytest.approx(1.0, abs=1e-3)
