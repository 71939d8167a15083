"""Every experiment renders, names only what is registered, and can be built."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, DatasetReader, Vocabulary
from allennlp.data.batch import Batch
from allennlp.models import Model

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.bilm import load_bilm
from elmo_plugin.corpora.tagged_words import span_columns
from elmo_plugin.environment import set_defaults
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary
from tests.bilm.files.test_folders import assert_same

PROJECT = Path(__file__).parents[1]
OWN_FILES = {
    "classifier": "own/reviews_train.csv",
    "pairs": "own/pairs_train.csv",
    "tagger": "pos/train.conllu",
}
TEXT = str(PROJECT / "fixtures/corpora/lm/small/train.txt")


def files(pattern):
    """Those that are so named; a loop over none would test nothing."""
    found = sorted(PROJECT.glob(pattern))
    assert found, pattern
    return found


EXPERIMENTS = sorted(
    path
    for folder in ("experiments", "experiments/ablations", "fixtures/experiments")
    for path in files(f"{folder}/*.jsonnet")
)
LANGUAGE_MODELS = [path for path in EXPERIMENTS if path.name.startswith(("bilm", "lm_"))]
# Ablations of lambda differ from others in that number only.
TASKS = [p for p in EXPERIMENTS if p not in LANGUAGE_MODELS and "_lambda_" not in p.name]


def named(path):
    return str(path.relative_to(PROJECT))


def build(params, number=None):
    """The model of an experiment, its vocabulary, and the first instances to train on."""
    reader = DatasetReader.from_params(params["dataset_reader"])
    instances = list(reader.read(params["train_data_path"]))[:number]
    vocab = Vocabulary.from_instances(instances)
    return Model.from_params(vocab=vocab, params=params["model"]), vocab, instances


@pytest.fixture
def changed(tmp_path):
    """An experiment with a change, in jsonnet."""

    def changed(name, change="{}"):
        path = tmp_path / "changed.jsonnet"
        path.write_text(f"(import '{PROJECT}/experiments/{name}.jsonnet') + {change}")
        return Params.from_file(path)

    return changed


@pytest.fixture
def own_files(monkeypatch):
    """Names the fixture of an experiment that reads users' own files, as they do."""

    def name(experiment, **others):
        train = {**OWN_FILES, **others}.get(experiment, "")
        monkeypatch.setenv("ELMO_TRAIN", train and str(PROJECT / "fixtures/corpora" / train))
        set_defaults(span_columns)

    return name


@pytest.mark.parametrize("path", TASKS, ids=named)
def test_the_experiment_builds_its_reader_and_model(path, own_files):
    own_files(path.stem.partition("_")[0])
    model, _, _ = build(Params.from_file(path))
    assert any(parameter.requires_grad for parameter in model.parameters())


@pytest.fixture(scope="module")
def vocabulary():
    return SoftmaxVocabulary.from_text(text=TEXT)


def language_model(params, vocabulary):
    # Of what is to be trained from nothing, no parameter is drawn: the large ones take gigabytes.
    device = "cpu" if "initial_weights" in params["model"] else "meta"
    with torch.device(device):
        return Model.from_params(vocab=vocabulary, params=params["model"])


@pytest.mark.parametrize("path", LANGUAGE_MODELS, ids=named)
def test_the_experiment_builds_its_reader_loaders_and_language_model(path, vocabulary):
    params = Params.from_file(path)
    reader = DatasetReader.from_params(params["dataset_reader"])
    for name in ("data_loader", "validation_data_loader"):
        loader = DataLoader.from_params(params[name], reader=reader, data_path=TEXT)
        loader.index_with(vocabulary)
    model = language_model(params, vocabulary)
    assert reader.options.bidirectional == model.bilm.options.bidirectional
    Vocabulary.by_name(params["vocabulary"]["type"])


@pytest.mark.parametrize(
    "name, num_words, millions, tolerance",
    [
        ("bilm", None, 93.6, 0.1),
        ("lm_cnn_big_lstm", 793_471, 1040, 10),
        ("lm_kim2016", 10_000, 19, 0.5),
    ],
)
def test_a_language_model_is_as_large_as_published(
    name, num_words, millions, tolerance, vocabulary
):
    params = Params.from_file(PROJECT / f"experiments/{name}.jsonnet")
    model = language_model(params, vocabulary)
    size = sum(parameter.numel() for parameter in model.bilm.parameters())
    if num_words is not None:
        size += num_words * (model.softmax.weight.size(1) + 1)
    assert size / 1e6 == pytest.approx(millions, abs=tolerance)


def test_every_experiment_says_what_it_is_and_is_short():
    table = (PROJECT / "experiments/README.md").read_text(encoding="utf-8")
    for path in files("experiments/**/*.jsonnet"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("//"), path
        if path.parent.name == "experiments":
            assert "// Paper: " in text and path.name in table, path
        if path.parent.name == "ablations":
            assert len(text.splitlines()) <= 3, path
        # Paths stand in one file only.
        assert "std.extVar" not in text, path
    for path in files("experiments/lib/*.libsonnet"):
        assert ("std.extVar" in path.read_text(encoding="utf-8")) == (path.stem == "paths"), path


@pytest.mark.parametrize("setting", ["", "trainable: true", "stateful: true"])
def test_layers_that_change_are_not_cached(changed, setting):
    change = f"{{ settings+: {{ elmo+: {{ {setting} }} }} }}"
    params = changed("srl_elmo", change).as_dict(quiet=True)
    assert params["model"]["placement"]["elmo"]["cache"] is (not setting)
    assert params["data_loader"]["type"] == "elmo-prefetch"


# What an ablation's name says after the experiment's: where that stands, and its value there.
CHANGES = {
    "input": (("placement", "at"), "input"),
    "output": (("placement", "at"), "output"),
    "both": (("placement", "at"), "both"),
    "last_layer": (("placement", "elmo", "layers"), "last"),
    "lambda_1": (("regularizer", "regexes", -1, 1, "alpha"), 1),
    "lambda_0.001": (("regularizer", "regexes", -1, 1, "alpha"), 0.001),
    "lambda_0": (("regularizer", "regexes", -1, 1, "alpha"), 0),
}
ABLATIONS = [
    (path, task, change)
    for path in files("experiments/ablations/*.jsonnet")
    for task, _, change in [path.stem.partition("_elmo_")]
    if change in CHANGES
]


@pytest.mark.parametrize(
    "path, task, change", ABLATIONS, ids=lambda value: getattr(value, "name", "")
)
def test_an_ablation_changes_what_its_name_says_and_no_more(path, task, change):
    (*keys, last), expected = CHANGES[change]
    models = []
    for experiment in (PROJECT / f"experiments/{task}_elmo.jsonnet", path):
        models.append(Params.from_file(experiment).as_dict(quiet=True))
        inner = models[-1]["model"]
        for key in keys:
            inner = inner[key]
        value = inner.pop(last)
    assert value == expected
    assert models[0] == models[1]


def test_the_words_of_a_bilm_are_sought_beside_its_weights(monkeypatch):
    monkeypatch.setenv("ELMO_WEIGHTS", "/some/folder/weights.hdf5")
    params = Params.from_file(PROJECT / "experiments/bilm_finetune.jsonnet")
    assert params["vocabulary"]["file"] == "/some/folder/vocabulary.txt"


def test_one_name_takes_the_place_of_the_two_files(monkeypatch, tmp_path):
    files = [os.environ[name] for name in ("ELMO_OPTIONS", "ELMO_WEIGHTS")]
    for file in files:
        shutil.copy(file, tmp_path)
    for name, value in (("ELMO_OPTIONS", ""), ("ELMO_WEIGHTS", ""), ("ELMO_BILM", str(tmp_path))):
        monkeypatch.setenv(name, value)
    set_defaults()
    assert os.environ["ELMO_OPTIONS"] == os.environ["ELMO_WEIGHTS"] == ""
    params = Params.from_file(PROJECT / "experiments/sst_elmo.jsonnet")
    elmo = params.as_dict(quiet=True)["model"]["placement"]["elmo"]
    assert elmo["bilm"] == str(tmp_path) and "options_file" not in elmo
    model, _, _ = build(params)
    assert_same(model.placement.elmo.bilm, load_bilm(*files))
    with pytest.raises(
        ConfigurationError, match="unset ELMO_BILM, and set ELMO_OPTIONS and ELMO_W"
    ):
        Params.from_file(PROJECT / "experiments/bilm_finetune.jsonnet")


def test_the_bilm_is_trained_as_bilm_tf_trains_it():
    trainer = Params.from_file(PROJECT / "experiments/bilm.jsonnet")["trainer"].as_dict()
    optimizer = trainer["optimizer"]
    ours = torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    adagrad = torch.optim.Adagrad(
        [ours], **{name: value for name, value in optimizer.items() if name != "type"}
    )
    # TensorFlow's Adagrad, from an accumulator of 1, on gradients of 20 times the loss.
    theirs, accumulator = torch.zeros_like(ours), torch.ones_like(ours)
    generator = torch.Generator().manual_seed(0)
    for scale in (0.01, 0.1, 1.0, 10.0):
        gradient = scale * torch.randn(3, generator=generator, dtype=torch.float64)
        ours.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([ours], trainer["grad_norm"])
        adagrad.step()
        gradient = 20 * gradient
        gradient = gradient * (10.0 / max(gradient.norm(), 10.0))
        accumulator += gradient**2
        theirs -= 0.2 * gradient / accumulator.sqrt()
        torch.testing.assert_close(ours.data, theirs, rtol=1e-5, atol=0)


@pytest.mark.parametrize("setting", ["", "by_sentence: true"])
def test_passages_are_read_by_sentence_where_that_is_set(changed, setting):
    params = changed("squad_elmo", f"{{ settings+: {{ {setting} }} }}").as_dict(quiet=True)
    for reader in (params["dataset_reader"], params["validation_dataset_reader"]):
        assert reader["by_sentence"] is bool(setting)


def test_prediction_and_training_can_be_in_bfloat16(changed):
    plain = changed("snli_elmo").as_dict(quiet=True)
    settings = "{ settings+: { dtype: 'bfloat16', mixed_precision: true } }"
    params = changed("snli_elmo", settings).as_dict(quiet=True)
    assert "dtype" not in plain["model"] and "mixed_precision" not in plain["trainer"]
    assert params["model"] == {**plain["model"], "dtype": "bfloat16"}
    assert params["trainer"] == {**plain["trainer"], "mixed_precision": True}


def test_word_vectors_are_learned_when_there_is_no_file(monkeypatch):
    monkeypatch.setenv("ELMO_GLOVE", "")
    params = Params.from_file(PROJECT / "experiments/srl.jsonnet")
    embedder = params["model"]["text_field_embedder"]["token_embedders"]["words"]
    assert "pretrained_file" not in embedder


def test_coreference_has_two_kinds_of_word_vectors_where_there_are_two_files(monkeypatch, tmp_path):
    path = tmp_path / "turian.txt"
    path.write_text("the 1 2\nParis 3 4\nparis 5 6\nmayor 7 8\n")
    monkeypatch.setenv("ELMO_TURIAN", str(path))
    monkeypatch.setenv("ELMO_TURIAN_DIM", "2")
    monkeypatch.setenv("ELMO_TURIAN_CASED", "yes")
    model, vocab, _ = build(Params.from_file(PROJECT / "experiments/coref.jsonnet"))
    # Words of GloVe's fixture, these, and characters.
    assert model.text_field_embedder.get_output_dim() == 100 + 2 + 150
    vectors = model.text_field_embedder.token_embedder_second_words
    assert not vectors.weight.requires_grad
    for word, vector in (("mayor", [7, 8]), ("Paris", [3, 4]), ("paris", [5, 6])):
        ids = torch.tensor([[vocab.get_token_index(word, "second_tokens")]])
        assert vectors(ids).tolist() == [[vector]]


@pytest.mark.parametrize("task", ["sst", "snli"])
def test_cove_changes_the_words_of_an_experiment_and_no_more(task):
    params = [
        Params.from_file(PROJECT / f"experiments/{name}.jsonnet").as_dict(quiet=True)
        for name in (task, f"{task}_cove")
    ]
    words, cove = (
        each["model"]["text_field_embedder"]["token_embedders"].pop("words") for each in params
    )
    assert params[0] == params[1]
    assert cove["type"] == "elmo-cove" and cove["layer"] == 2 and cove["with_words"]
    assert cove["word_vectors"] == {**words, "zero_unknown": True}


def test_cove_needs_word_vectors_of_its_own_width(monkeypatch, tmp_path):
    experiment = PROJECT / "experiments/sst_cove.jsonnet"
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 2\nthe 3 4\n")
    monkeypatch.setenv("ELMO_GLOVE", str(path))
    monkeypatch.setenv("ELMO_GLOVE_DIM", "2")
    with pytest.raises(ConfigurationError, match="100 wide, and `word_vectors` are 2 wide"):
        build(Params.from_file(experiment))
    monkeypatch.setenv("ELMO_GLOVE", "")
    with pytest.raises(ConfigurationError, match="CoVe reads word vectors: set ELMO_GLOVE"):
        Params.from_file(experiment)
    monkeypatch.setenv("ELMO_GLOVE", str(path))
    monkeypatch.setenv("ELMO_COVE", "")
    with pytest.raises(ConfigurationError, match="CoVe: set ELMO_COVE to an encoder that reads"):
        Params.from_file(experiment)


def model_and_batch(name):
    """An experiment's model, in training mode, and the first texts of the fixture to train on."""
    model, vocab, instances = build(Params.from_file(PROJECT / f"experiments/{name}.jsonnet"), 40)
    batch = Batch(instances)
    batch.index_instances(vocab)
    return model, batch.as_tensor_dict()


def share_of_zeros(model, tensors, module, columns):
    """Of what a module reads in training: how many numbers of these columns are 0."""
    inputs = []
    module.register_forward_pre_hook(lambda _, found: inputs.append(found[0]))
    torch.manual_seed(0)
    model.train()(**tensors)
    # Shape: (num_real_tokens, num_columns)
    rows = inputs[0].flatten(end_dim=-2)
    rows = rows[(rows != 0).any(dim=-1)][:, columns]
    return (rows == 0).double().mean().item()


@pytest.mark.parametrize(
    "task, first", [("snli", "encoder"), ("sst", "feedforward"), ("ner", "lower_encoder")]
)
def test_elmo_is_dropped_out_once_at_the_input(task, first):
    model, tensors = model_and_batch(f"{task}_elmo")
    elmo = slice(-model.placement.input_dim, None)
    found = share_of_zeros(model, tensors, getattr(model, first), elmo)
    assert found == pytest.approx(0.5, abs=0.03)


def test_sentiment_is_dropped_out_as_in_allennlp():
    model, tensors = model_and_batch("sst")
    for module, share in ((model.feedforward, 0.25), (model.classifier, 0.1)):
        found = share_of_zeros(model, tensors, module, slice(None))
        assert found == pytest.approx(share, abs=0.02)
    model, tensors = model_and_batch("sst_elmo")
    elmo = slice(-model.placement.output_dim, None)
    assert share_of_zeros(model, tensors, model.pooling_attention, elmo) == 0.0


def test_a_misspelt_key_is_refused_by_name(changed):
    with pytest.raises(ConfigurationError, match="predicat_dim"):
        build(changed("srl_elmo", "{ model+: { predicat_dim: 3 } }"))


@pytest.mark.parametrize(
    "file, change, tags, metric",
    [
        ("pos/train.conllu", "", "plain", "+accuracy"),
        ("ner/train.conll", "", "spans", "+f1-measure-overall"),
        ("ner/train.conll", "tag_column: 3", "spans", "+f1-measure-overall"),
        ("ner/train.conll", "tag_column: 2", "plain", "+accuracy"),
        ("ner/train.conll", "tags: 'plain'", "plain", "+accuracy"),
        ("nowhere.conll", "", "plain", "+accuracy"),
    ],
)
def test_the_kind_of_tags_is_seen_from_the_training_file(
    own_files, changed, file, change, tags, metric
):
    own_files("tagger", tagger=file)
    params = changed("tagger_elmo", f"{{ settings+: {{ {change} }} }}").as_dict(quiet=True)
    parts = ("dataset_reader", "validation_dataset_reader", "model")
    assert {params[part].get("tags", "spans") for part in parts} == {tags}
    assert params["trainer"]["validation_metric"] == metric


@pytest.mark.parametrize("name", OWN_FILES)
def test_own_files_are_named_by_the_environment_or_by_settings(own_files, changed, name):
    own_files("no experiment")
    with pytest.raises(ConfigurationError, match="set ELMO_TRAIN to the training data"):
        changed(name)
    corpus = "corpus: { train: 'a.conll', dev: 'b.conll' }"
    if name == "tagger":
        with pytest.raises(
            ConfigurationError, match="settings.tags to 'spans' or 'plain'.*a.conll"
        ):
            changed(name, f"{{ settings+: {{ {corpus} }} }}")
    tags = ", tags: 'spans'" if name == "tagger" else ""
    params = changed(name, f"{{ settings+: {{ {corpus} {tags} }} }}").as_dict(quiet=True)
    assert (params["train_data_path"], params["validation_data_path"]) == ("a.conll", "b.conll")
    assert "dev_fraction" not in params["dataset_reader"]


@pytest.mark.parametrize("name", OWN_FILES)
def test_a_part_of_the_training_file_takes_the_place_of_dev(own_files, changed, name):
    own_files(name)
    params = changed(name, "{ settings+: { dev_fraction: 0.3 } }")
    path = params["train_data_path"]
    assert params["validation_data_path"] == path
    train, dev = (
        [
            repr(instance["metadata"].metadata)
            for instance in DatasetReader.from_params(part).read(path)
        ]
        for part in (params["dataset_reader"], params["validation_dataset_reader"])
    )
    assert train and dev and not set(train) & set(dev)


@pytest.mark.parametrize(
    "name, task", [("tagger", "ner"), ("classifier", "sst"), ("pairs", "snli")]
)
def test_own_files_are_a_setting_of_the_papers_experiment(own_files, name, task):
    """With ELMo, too, the model is the same but for its name."""
    own_files(name, tagger="ner/train.conll")
    models = [
        Params.from_file(PROJECT / f"experiments/{each}_elmo.jsonnet").as_dict(quiet=True)["model"]
        for each in (name, task)
    ]
    assert [model.pop("type") for model in models] == [f"elmo-{name}", f"elmo-{task}"]
    assert models[0] == models[1]
