"""What all six tasks promise, tested once for each."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model_from_file
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase
from allennlp.common.util import sanitize
from allennlp.data import Batch, DatasetReader
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo
from allennlp.data.fields import ListField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_plugin import load_task
from elmo_plugin.tasks.prediction import Prediction
from elmo_plugin.util import bfloat16
from tests.commands.running import run
from tests.html import shown, text_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
DEV = {
    "coref": FIXTURES / "corpora/coref/dev.gold_conll",
    "ner": FIXTURES / "corpora/ner/dev.conll",
    "snli": FIXTURES / "corpora/snli/snli_1.0_dev.jsonl",
    "squad": FIXTURES / "corpora/squad/dev-v1.1.json",
    "srl": FIXTURES / "corpora/srl/dev.gold_conll",
    "sst": FIXTURES / "corpora/sst/dev.txt",
}
each_task = pytest.mark.parametrize("task", DEV)
# A constant added to all scores of a softmax changes nothing, so that its gradient is zero.
WITHOUT_GRADIENT = {
    "mention_scorer.head_attention.bias",
    "bi_attention.similarity._bias",
    "start_projection.bias",
    "end_projection.bias",
}


def experiment(name: str) -> Params:
    return Params.from_file(FIXTURES / f"experiments/{name}.jsonnet")


def make_reader(task: str, **settings) -> DatasetReader:
    return DatasetReader.by_name(f"elmo-{task}")(**settings)


def metadata(instances):
    """What tells the instances of a corpus apart."""
    return [repr(instance["metadata"].metadata) for instance in instances]


def lines(task: str):
    return (FIXTURES / f"predict/{task}.jsonl").read_text(encoding="utf-8").splitlines()


def approximately(value):
    """The value, with a tolerance for every number in it that is not whole."""
    if isinstance(value, dict):
        # Of answers almost as probable as each other, the order may change.
        return {key: approximately(each) for key, each in value.items() if key != "n_best"}
    if isinstance(value, list):
        return [approximately(each) for each in value]
    return pytest.approx(value, abs=1e-5) if isinstance(value, float) else value


@each_task
def test_the_loss_in_mixed_precision_is_nearly_that_in_float32(trained, task):
    archive = trained(task)
    model = archive.model
    instances = list(archive.dataset_reader.read(DEV[task]))[: 2 if task == "coref" else 16]
    batch = Batch(instances)
    batch.index_instances(model.vocab)
    losses, gradients = [], []
    for is_mixed in (False, True):
        # Without dropout.
        model.eval().zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = model(**batch.as_tensor_dict())["loss"]
        loss.backward()
        assert loss.dtype == torch.float32
        found = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        losses.append(loss.item())
        gradients.append(torch.cat(found))
    assert losses[1] == pytest.approx(losses[0], rel=0.02) and losses[1] != losses[0]
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


class TestTraining(ModelTestCase):
    @pytest.mark.parametrize("elmo", ["", "_elmo"])
    @each_task
    def test_a_model_trains_saves_and_loads_and_its_predictions_do_not_depend_on_the_batch(
        self, task, elmo
    ):
        # The comparison needs batches in a fixed order, with several documents in each.
        loader = f"{{ batch_size: {2 if task == 'coref' else 16} }}"
        param_file = self.TEST_DIR / "experiment.jsonnet"
        param_file.write_text(
            f"(import '{FIXTURES}/experiments/{task}{elmo}.jsonnet')"
            f" {{ data_loader: {loader}, validation_data_loader: {loader} }}"
        )
        self.set_up_model(param_file, DEV[task])
        self.ensure_model_can_train_save_and_load(
            self.param_file,
            overrides='{"trainer.num_epochs": 1, "trainer.patience": 1}',
            gradients_to_ignore=WITHOUT_GRADIENT,
        )
        self.ensure_batch_predictions_are_consistent(keys_to_ignore=["loss"])


@each_task
def test_dtype_is_that_of_prediction_and_not_of_training(task, trained, with_bfloat16, monkeypatch):
    model, dataset_reader = trained(task).model, trained(task).validation_dataset_reader
    params = experiment(task)["model"]
    half = Model.from_params(vocab=model.vocab, params=params, dtype="bfloat16")
    half.load_state_dict(model.state_dict())
    instances = list(dataset_reader.read(DEV[task]))[: 2 if task == "coref" else 16]
    batch = Batch(instances)
    batch.index_instances(model.vocab)

    def loss(model):
        torch.manual_seed(0)
        return model(**batch.as_tensor_dict())["loss"]

    assert torch.equal(loss(half.train()), loss(model.train()))
    model.eval()
    assert not torch.equal(loss(half.eval()), loss(model))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(loss(half), loss(model))
    for answers in half.forward_on_instances(instances):
        json.dumps(sanitize(answers))
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", False)
    assert torch.equal(loss(half), loss(model))
    with pytest.raises(ConfigurationError, match="found 'float16'"):
        Model.from_params(vocab=model.vocab, params=experiment(task)["model"], dtype="float16")


@each_task
def test_reader_model_and_predictor_have_the_same_name(task):
    name = f"elmo-{task}"
    for registry in (DatasetReader, Model, Predictor):
        assert registry.by_name(name).__module__.startswith(f"elmo_plugin.tasks.{task}.")
    assert Model.by_name(name).default_predictor == name


@each_task
def test_a_misspelt_setting_is_refused_by_name(task, trained):
    name = f"elmo-{task}"
    with pytest.raises(ConfigurationError, match="max_instance'"):
        DatasetReader.from_params(Params({"type": name, "max_instance": 3}))
    params = experiment(task)["model"]
    params["regulariser"] = "l2"
    with pytest.raises(ConfigurationError, match="regulariser"):
        Model.from_params(vocab=trained(task).model.vocab, params=params)
    with pytest.raises(TypeError, match="output_formats"):
        Predictor.from_archive(trained(task), extra_args={"output_formats": "json"})


@pytest.mark.parametrize(
    "task, settings", [*((task, {}) for task in DEV), ("sst", {"min_phrase_tokens": 2})]
)
def test_workers_share_the_instances(task, settings):
    parts = []
    for number in (0, 1):
        reader = make_reader(task, **settings)
        reader._set_worker_info(WorkerInfo(2, number))
        parts.append(metadata(reader.read(DEV[task])))
    assert abs(len(parts[0]) - len(parts[1])) <= 1
    assert sorted(parts[0] + parts[1]) == sorted(
        metadata(make_reader(task, **settings).read(DEV[task]))
    )


@each_task
def test_at_most_max_instances_are_read(task):
    every = metadata(make_reader(task).read(DEV[task]))
    assert metadata(make_reader(task, max_instances=3).read(DEV[task])) == every[:3]


@each_task
def test_text_is_indexed_by_single_ids_by_default(task):
    (instance,) = make_reader(task, max_instances=1).read(DEV[task])
    for name in make_reader(task).text_fields:
        field = instance[name]
        for text in field if isinstance(field, ListField) else [field]:
            assert set(text.token_indexers) == {"words"}


@each_task
def test_the_loss_is_the_mean_over_instances_whatever_the_padding(task, trained):
    model = trained(task).model.eval()
    instances = list(make_reader(task, max_instances=6).read(DEV[task]))
    indexers = trained(task).validation_dataset_reader
    for instance in instances:
        indexers.apply_token_indexers(instance)

    def loss(*chosen):
        batch = Batch(chosen)
        batch.index_instances(model.vocab)
        return model(**batch.as_tensor_dict())["loss"]

    with torch.no_grad():
        mean = torch.stack([loss(instance) for instance in instances]).mean()
        torch.testing.assert_close(loss(*instances), mean)
        torch.testing.assert_close(loss(*instances[::-1]), mean)
    model.get_metrics(reset=True)


@each_task
def test_the_baseline_has_no_part_of_elmo(task, trained):
    model = trained(task).model
    assert model.input_dim == model.text_field_embedder.get_output_dim()
    assert not [name for name, _ in model.named_parameters() if "elmo" in name]


@each_task
def test_the_penalty_is_on_the_layer_scores_of_every_placement(task, trained):
    params = experiment(f"{task}_elmo")["model"]
    params["placement"]["at"] = "both"
    params["regularizer"] = {"regexes": [["layer_scores", {"type": "l2", "alpha": 0.5}]]}
    model = Model.from_params(vocab=trained(task).model.vocab, params=params)
    assert model.get_regularization_penalty().item() == 0.0
    with torch.no_grad():
        for mix, scores in zip(model.placement.elmo.mixes, ([1.0, 2.0, 0.0], [0.0, 0.0, 3.0])):
            mix.layer_scores.copy_(torch.tensor(scores))
            mix.gamma.fill_(100.0)
    # Without gamma: 0.5 * (1 + 4 + 9).
    assert model.get_regularization_penalty().item() == 7.0


@each_task
def test_unlabelled_input_has_neither_loss_nor_metrics(task, trained):
    predictor, model = Predictor.from_archive(trained(task)), trained(task).model
    found = []
    handle = model.register_forward_hook(lambda module, inputs, outputs: found.append(outputs))
    model.get_metrics(reset=True)
    predictor.predict_batch_json([predictor.load_line(line) for line in lines(task)])
    handle.remove()
    assert found and not any("loss" in outputs for outputs in found)
    assert model.get_metrics() == model.get_metrics(reset=True) == {}


@each_task
def test_training_without_labels_is_refused(task, trained):
    predictor = Predictor.from_archive(trained(task))
    inputs = [predictor.load_line(line) for line in lines(task)]
    trained(task).model.train()
    with pytest.raises(ConfigurationError, match=f"^elmo-{task}: training needs .*, but"):
        predictor.predict_batch_json(inputs)
    trained(task).model.eval()


@each_task
def test_a_line_gives_the_same_alone_in_a_batch_and_in_another_order(task, trained):
    predictor = Predictor.from_archive(trained(task))
    inputs = [predictor.load_line(line) for line in lines(task)]
    together = [approximately(output) for output in predictor.predict_batch_json(inputs)]
    alone = [predictor.predict_json(line) for line in inputs]
    reversed_ = predictor.predict_batch_json(inputs[::-1])[::-1]
    for expected, *outputs in zip(together, alone, reversed_, strict=True):
        for output in outputs:
            assert {key: output[key] for key in expected} == expected
            assert json.loads(predictor.dump_line(output)) == output
    assert predictor.predict_batch_json([]) == []


# Not `each_task`: a notebook shows the predictions of a task that is added as dictionaries.
@pytest.mark.parametrize("task", ["coref", "ner", "snli", "squad", "srl", "sst"])
def test_a_notebook_shows_predictions(task, trained):
    predictor = Predictor.from_archive(trained(task))
    inputs = [predictor.load_line(line) for line in lines(task)]
    for output in predictor.predict_batch_json(inputs):
        tree = shown(output)
        for field in ("tokens", "premise_tokens", "hypothesis_tokens"):
            assert set(output.get(field, ())) <= set(text_of(tree).split()) | {""}
        if task in ("ner", "snli", "srl", "sst"):
            assert output.get("tokens", output.get("premise_tokens"))
        again = Prediction(json.loads(predictor.dump_line(output)))
        assert again == output and list(shown(again).iter())
    if task == "squad":
        assert [predictor.predict_json(line).passage for line in inputs] == [
            line["passage"] for line in inputs
        ]


@each_task
def test_a_json_line_keeps_every_script_readable(task, trained):
    predictor = Predictor.from_archive(trained(task))
    assert predictor.dump_line({"text": "日本\n"}) == '{"text": "日本\\n"}\n'


@each_task
@pytest.mark.parametrize(
    "line, message",
    [
        ("A quiet triumph.", "expected a JSON object like {.*, found 'A quiet triumph.'"),
        ('{"sentence": "A qui', "cut off"),
        ("[1]", "expected a JSON object like {.*, found"),
    ],
)
def test_a_line_that_is_no_json_object_is_named_by_its_number(task, trained, line, message):
    predictor = Predictor.from_archive(trained(task))
    predictor.load_line(lines(task)[0])
    with pytest.raises(ValueError, match=f"line 2: .*{message}"):
        predictor.load_line(line + "\n")


@each_task
def test_an_output_format_that_does_not_exist_is_refused(task, trained):
    with pytest.raises(
        ConfigurationError, match="`output_format` to be one of json.*, found 'xml'"
    ):
        Predictor.from_archive(trained(task), extra_args={"output_format": "xml"})


@pytest.mark.parametrize("task", ["coref", "srl"])
def test_a_folder_of_conll_2012_is_a_corpus_wherever_a_file_is(task, tmp_path):
    (tmp_path / "data/nw").mkdir(parents=True)
    for name in ("data/b.v4_gold_conll", "data/nw/a.v4_gold_conll"):
        shutil.copy(DEV[task], tmp_path / name)
    paths = {f"{part}_data_path": str(tmp_path / "data") for part in ("train", "validation")}
    overrides = {**paths, "trainer.num_epochs": 1}
    train_model_from_file(FIXTURES / f"experiments/{task}.jsonnet", tmp_path / "run", overrides)
    scores, lines = [], []
    for path in (DEV[task], tmp_path / "data"):
        archive, out = tmp_path / "run/model.tar.gz", tmp_path / "out"
        run("evaluate", archive, path, "--output-file", out)
        metrics = json.loads(out.read_text()).items()
        scores.append({name: value for name, value in metrics if "f1" in name})
        run("predict", archive, path, "--use-dataset-reader", "--silent", "--output-file", out)
        lines.append(out.read_text().splitlines())
    # Of a corpus and of the same corpus twice.
    assert scores[0] and scores[1] == pytest.approx(scores[0])
    assert lines[1] == 2 * lines[0]


def test_only_an_id_outside_of_an_embedding_blames_the_vocabulary(monkeypatch):
    model = load_task("ner")._model
    ids = torch.tensor([2])
    for look_up in (lambda: torch.nn.Embedding(2, 3)(ids), lambda: torch.zeros(2, 3)[ids]):
        monkeypatch.setattr(model, "forward", look_up)
        with pytest.raises(ConfigurationError, match="vocabulary or the token indexers are not"):
            model()
    monkeypatch.setattr(model, "forward", lambda: [][0])
    with pytest.raises(IndexError, match="list index"):
        model()
