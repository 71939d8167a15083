import io
import json
import math
import shutil
import tarfile
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model_from_file
from allennlp.common import Params
from allennlp.models import Model, archival
from allennlp.predictors import Predictor

from elmo_plugin import load_archive
from elmo_plugin.analysis.layer_weights import layer_weights
from elmo_plugin.bilm import fingerprint
from elmo_plugin.bilm.files import trained as module
from elmo_plugin.bilm.files.pack import _with_fewer_words, pack
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.environment import DEFAULTS
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from elmo_plugin.util.word_vectors import NUM_TRAINED
from tests.commands.running import failure, run
from tests.tagger import FIXTURES, repack, saved

SENTENCE = {"sentence": "Ada Lovelace met Charles Babbage in a zeppelin over London ."}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "ner"
    environment = pytest.MonkeyPatch()
    for name in ("ELMO_OPTIONS", "ELMO_WEIGHTS"):
        environment.setenv(name, str(shipped(DEFAULTS[name])))
    overrides = {
        "trainer.num_epochs": 2,
        "model.text_field_embedder.token_embedders.words.num_extra_words": 300,
        "model.placement.elmo.cache": True,
    }
    train_model_from_file(FIXTURES / "experiments/ner_elmo.jsonnet", folder, overrides=overrides)
    environment.undo()
    return folder / "model.tar.gz"


@pytest.fixture(scope="module")
def folder(trained, tmp_path_factory):
    """The archive, unpacked."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(trained) as archive:
        archive.extractall(unpacked, filter="data")
    return unpacked


@pytest.fixture(scope="module")
def packed(trained, tmp_path_factory):
    output = tmp_path_factory.mktemp("packed") / "ner.tar.gz"
    pack(trained, output, num_extra_words=100)
    return output


def content(archive, name):
    with tarfile.open(archive) as opened:
        return opened.extractfile(name).read()


def test_a_packed_model_predicts_the_same_with_any_loader(trained, packed):
    original = Predictor.from_archive(load_archive(trained)).predict_json(SENTENCE)
    for load in (load_archive, archival.load_archive):
        found = Predictor.from_archive(load(packed)).predict_json(SENTENCE)
        assert found["tags"] == original["tags"]
        assert set(found) == set(original)


def test_only_weights_of_the_task_are_in_it_in_half_precision(trained, packed):
    assert packed.stat().st_size < trained.stat().st_size / 3
    state = torch.load(io.BytesIO(content(packed, "weights.th")), weights_only=True)
    # AllenNLP's `diff` and means of models work on such tensors only.
    assert {value.dtype for value in state.values()} == {torch.half}
    (of_bilm,) = {name.rpartition(".bilm.")[0] for name in state if ".bilm." in name}
    names = {f"{of_bilm}.bilm.{name}" for name in ("options_json", "fingerprint")}
    assert {name for name in state if ".bilm." in name} == names
    # Loaded, they have the types of the model, and the biLM is the shipped one.
    model, expected = (load_archive(path).model for path in (packed, trained))
    assert fingerprint(model.placement.elmo.bilm) == fingerprint(expected.placement.elmo.bilm)
    for name, parameter in expected.named_parameters():
        if ".extra" not in name:
            found = dict(model.named_parameters())[name]
            assert found.dtype == parameter.dtype
            torch.testing.assert_close(found, parameter, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("change", [torch.Tensor.bfloat16, lambda value: (value + value) / 2])
def test_types_and_means_of_all_tensors_leave_a_packed_archive(packed, tmp_path, change):
    state = torch.load(io.BytesIO(content(packed, "weights.th")))
    changed = {"weights.th": saved({name: change(value) for name, value in state.items()})}
    archives = [packed, repack(packed, tmp_path / "changed.tar.gz", files=changed)]
    first, second = (Predictor.from_archive(load_archive(each)) for each in archives)
    assert first.predict_json(SENTENCE)["tags"] == second.predict_json(SENTENCE)["tags"]


def test_words_of_the_training_and_the_most_frequent_others_stay(trained, packed):
    before, after = (
        content(path, "vocabulary/tokens.txt").split(b"\n") for path in (trained, packed)
    )
    assert after[:-1] == before[: len(after) - 1]
    model, expected = (load_archive(path).model for path in (packed, trained))
    words, all_words = (m.text_field_embedder.token_embedder_words for m in (model, expected))
    assert len(words.extra) == 100 and len(before) - len(after) == len(all_words.extra) - 100 > 0
    torch.testing.assert_close(words.extra, all_words.extra[:100], rtol=1e-3, atol=1e-6)
    # A word whose vector is gone is read as an unknown one.
    unknown = model.vocab.get_token_index(before[-2].decode())
    assert unknown == model.vocab.get_token_index("@@UNKNOWN@@")


def test_words_may_contain_a_carriage_return(tmp_path):
    words = "a\nb\nc\rd\ne\nf\n"
    (tmp_path / "tokens.txt").write_bytes(words.encode())
    (tmp_path / f"tokens{NUM_TRAINED}.txt").write_text("3")
    state = {"words.weight": torch.zeros(3, 2), "words.extra": torch.arange(6.0).view(3, 2)}
    found = _with_fewer_words(state, tmp_path, 2)
    assert found["words.extra"].tolist() == [[0, 1], [2, 3]]
    assert (tmp_path / "tokens.txt").read_bytes() == b"a\nb\nc\rd\ne\n"


def test_the_configuration_names_no_file_of_the_bilm_no_cache_and_no_folder(packed):
    text = content(packed, "config.json").decode()
    assert "options.json" not in text and "weights." not in text
    assert json.loads(text)["model"]["placement"]["elmo"]["cache"] is False
    assert json.loads(text)["train_data_path"] == "train.conll"
    assert str(FIXTURES) not in text


def test_archives_are_read_without_their_models_too(trained, packed, tmp_path):
    first, second = layer_weights(trained)[0], layer_weights(packed)[0]
    assert second.weights == pytest.approx(first.weights, abs=1e-3)
    # Packed again, it is the same, byte for byte.
    pack(packed, tmp_path / "again.tar.gz", num_extra_words=100)
    assert (tmp_path / "again.tar.gz").read_bytes() == packed.read_bytes()
    assert fingerprint(TrainedModel.read(packed).bilm()) == fingerprint(module.shipped_bilm())


def test_another_bilm_than_that_of_this_version_is_refused(packed, monkeypatch):
    other = load_archive(packed).model.placement.elmo.bilm
    with torch.no_grad():
        other.lstm.forward_layers[0].input.weight[0, 0] += 1
    monkeypatch.setattr(module, "shipped_bilm", lambda: other)
    with pytest.raises(ConfigurationError, match="packed for the biLM .* comes with this version"):
        load_archive(packed)


def test_a_bilm_of_the_user_stays_in_the_archive(trained, tmp_path, monkeypatch):
    from elmo_plugin.bilm.files import pack as module

    other = load_archive(trained).model.placement.elmo.bilm
    with torch.no_grad():
        other.lstm.forward_layers[0].input.weight[0, 0] += 1
    monkeypatch.setattr(module, "shipped_bilm", lambda: other)
    pack(trained, tmp_path / "own.tar.gz")
    config = json.loads(content(tmp_path / "own.tar.gz", "config.json"))
    assert config["model"]["placement"]["elmo"]["weight_file"].endswith("weights.safetensors")
    own = torch.load(io.BytesIO(content(tmp_path / "own.tar.gz", "weights.th")))
    whole = load_archive(trained).model.state_dict()
    of_bilm = {name for name in whole if ".bilm." in name}
    assert of_bilm and of_bilm <= own.keys()
    for name in of_bilm:
        torch.testing.assert_close(
            own[name].to(whole[name].dtype), whole[name], rtol=2**-10, atol=1e-7
        )


def test_a_bilm_outside_of_an_elmo_stays_in_the_archive(tmp_path):
    options = {"type": "elmo-bilm", "options_file": str(shipped(DEFAULTS["ELMO_OPTIONS"]))}
    (tmp_path / "text.txt").write_text("the dog barks\n")
    vocabulary = SoftmaxVocabulary.from_text(text=str(tmp_path / "text.txt"))
    model = Model.from_params(Params(dict(options)), vocab=vocabulary)
    model.bilm.load_state_dict(module.shipped_bilm().state_dict())
    folder = tmp_path / "trained"
    vocabulary.save_to_files(folder / "vocabulary")
    torch.save(model.state_dict(), folder / "weights.th")
    config = {"dataset_reader": options, "model": options}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "meta.json").write_text('{"version": "2.10.1"}')
    pack(folder, tmp_path / "packed.tar.gz")
    found = load_archive(tmp_path / "packed.tar.gz").model.state_dict()
    for name, value in model.state_dict().items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=1e-6)


def test_a_missing_part_is_named(folder, tmp_path):
    for part in ("config.json", "vocabulary", "meta.json"):
        shutil.copytree(folder, tmp_path / part, ignore=shutil.ignore_patterns(part))
        with pytest.raises(ConfigurationError, match=f"no trained model: expected {part} in it"):
            pack(tmp_path / part, tmp_path / "out.tar.gz")


@pytest.mark.parametrize(
    "name, value, int8",
    [("tag_projection.bias", 1e6, False), ("tag_projection.weight", math.nan, True)],
)
def test_numbers_that_the_archive_does_not_hold_are_refused(folder, tmp_path, name, value, int8):
    shutil.copytree(folder, tmp_path / "large")
    state = torch.load(folder / "weights.th", weights_only=True)
    state[name].view(-1)[0] = value
    torch.save(state, tmp_path / "large" / "weights.th")
    with pytest.raises(ConfigurationError, match=f"{name}.* has numbers that half"):
        pack(tmp_path / "large", tmp_path / "out.tar.gz", int8=int8)
    assert not (tmp_path / "out.tar.gz").exists()


def test_matrices_in_8_bits_have_at_most_half_a_step_of_error(trained, packed, tmp_path):
    pack(trained, tmp_path / "int8.tar.gz", num_extra_words=100, int8=True)
    assert (tmp_path / "int8.tar.gz").stat().st_size < packed.stat().st_size
    expected = dict(load_archive(trained).model.named_parameters())
    for load in (load_archive, archival.load_archive):
        model = load(tmp_path / "int8.tar.gz").model
        num_rounded = 0
        for name, value in model.named_parameters():
            if value.dim() == 2 and ".bilm." not in name:
                original = expected[name][: len(value)]
                step = original.abs().amax(dim=1, keepdim=True) / 127
                error = (value - original).abs() / step.clamp(1e-30)
                assert error.max() < 0.51, name
                num_rounded += int(error.max() > 0.1)
        assert num_rounded > 3
    assert fingerprint(TrainedModel.read(tmp_path / "int8.tar.gz").bilm()) == fingerprint(
        module.shipped_bilm()
    )


def test_only_models_of_the_tasks_are_packed_in_8_bits(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "other")
    (tmp_path / "other" / "config.json").write_text('{"model": {"type": "mine"}}')
    with pytest.raises(ConfigurationError, match="of the project's tasks can be .*, found mine"):
        pack(tmp_path / "other", tmp_path / "out.tar.gz", int8=True)


def test_the_command(trained, tmp_path, capsys):
    output = tmp_path / "ner.tar.gz"
    run("elmo-pack", trained, output, "--extra-words", "5")
    assert "MB." in capsys.readouterr().out
    assert "exists. Give --force" in failure("elmo-pack", trained, output)
    assert "expected 0 or more" in failure("elmo-pack", trained, output, "--extra-words", "-1")
    assert "is a folder" in failure("elmo-pack", trained, tmp_path)
    run("elmo-pack", trained, tmp_path / "new/ner.tar.gz")
    assert (tmp_path / "new/ner.tar.gz").exists()
    assert "does not exist" in failure("elmo-pack", tmp_path / "no", tmp_path / "no/x.tar.gz")
    assert not (tmp_path / "no").exists()
    message = failure("elmo-pack", trained, output / "x.tar.gz")
    assert f"x.tar.gz cannot be written: {output} is not a folder." in message
    assert Path(output).exists()
