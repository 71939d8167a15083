"""What all six tasks promise, also with users' own files, tested once for each."""

import json

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase
from allennlp.common.util import sanitize
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader, SimpleDataLoader
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo
from allennlp.data.fields import ListField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_plugin.tasks.prediction import Prediction
from elmo_plugin.training import BootstrapEvaluator
from elmo_plugin.util import bfloat16
from tests.html import shown, text_of
from tests.tasks.small import (
    CORPORA,
    FIXTURES,
    MODELS,
    OWN_CORPORA,
    RELU,
    ROOMS,
    build,
    experiment,
    learn,
    make_batch,
    placement,
    plain_reader,
    read,
)

DEV = {task: paths["dev"] for task, paths in {**CORPORA, **OWN_CORPORA}.items()}
each_task = pytest.mark.parametrize("task", DEV)
# Not a task that is added: of these there are small models, and more is known.
each_of_six = pytest.mark.parametrize("task", MODELS)
# A constant added to all scores of a softmax changes nothing, so that its gradient is zero.
WITHOUT_GRADIENT = {
    "mention_scorer.head_attention.bias",
    "bi_attention.similarity._bias",
    "start_projection.bias",
    "end_projection.bias",
}


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
        assert registry.by_name(name).__module__.startswith(
            f"elmo_plugin.tasks.{ROOMS.get(task, task)}."
        )
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
    with pytest.raises(ConfigurationError, match="output_formats"):
        Predictor.from_archive(trained(task), extra_args={"output_formats": "json"})


@pytest.mark.parametrize(
    "task, settings", [*((task, {}) for task in DEV), ("sst", {"min_phrase_tokens": 2})]
)
def test_workers_share_the_instances(task, settings):
    parts = []
    for number in (0, 1):
        reader = plain_reader(task, **settings)
        reader._set_worker_info(WorkerInfo(2, number))
        parts.append(metadata(reader.read(DEV[task])))
    assert abs(len(parts[0]) - len(parts[1])) <= 1
    assert sorted(parts[0] + parts[1]) == sorted(read_plain(task, **settings))


def read_plain(task: str, split: str = "dev", **settings):
    path = {**CORPORA, **OWN_CORPORA}[task][split]
    return metadata(plain_reader(task, **settings).read(path))


@each_task
def test_at_most_max_instances_are_read(task):
    assert read_plain(task, max_instances=3) == read_plain(task)[:3]


@each_of_six
def test_a_fraction_is_a_sample_in_the_order_of_the_file(task):
    everything = read_plain(task, "train")
    samples = (read_plain(task, "train", fraction=part, fraction_seed=3) for part in (0.5, 0.3))
    for sample in samples:
        assert len(sample) < len(everything)
        remaining = iter(everything)
        assert all(each in remaining for each in sample)
        # A smaller sample is a part of this one.
        everything = sample


def test_the_size_of_a_fraction_is_about_right_and_another_seed_draws_another():
    everything = read_plain("sst", "train")
    samples = [read_plain("sst", "train", fraction=0.25, fraction_seed=seed) for seed in range(8)]
    assert sum(map(len, samples)) / 8 == pytest.approx(len(everything) / 4, rel=0.35)
    assert samples[0] == read_plain("sst", "train", fraction=0.25) != samples[1]


def test_a_fraction_does_not_depend_on_workers():
    found = []
    for num_workers in (0, 2):
        reader = DatasetReader.by_name("elmo-ner")(fraction=0.5)
        path = CORPORA["ner"]["train"]
        loader = MultiProcessDataLoader(reader, path, batch_size=4, num_workers=num_workers)
        found.append(sorted(metadata(loader.iter_instances())))
    assert found[0] == found[1] and found[0]


@pytest.mark.parametrize(
    "fraction, message",
    [
        (0.0, "above 0 and at most 1, found 0.0"),
        (1.5, "above 0 and at most 1, found 1.5"),
        (1e-9, "A `fraction` of 1e-09 leaves nothing of"),
    ],
)
def test_a_fraction_that_leaves_nothing_is_refused(fraction, message):
    with pytest.raises(ConfigurationError, match=message):
        read_plain("ner", fraction=fraction)


@each_task
def test_text_is_indexed_by_single_ids_by_default(task):
    reader = plain_reader(task, max_instances=1)
    (instance,) = reader.read(DEV[task])
    for name in reader.text_fields:
        field = instance[name]
        for text in field if isinstance(field, ListField) else [field]:
            assert set(text.token_indexers) == {"words"}


@each_task
def test_the_loss_is_the_mean_over_instances_whatever_the_padding_and_the_order(task, trained):
    params, vocab = experiment(f"{task}_elmo"), trained(task).model.vocab
    params["model"]["placement"]["at"] = "both"
    model = Model.from_params(vocab=vocab, params=params["model"]).eval()
    instances = list(DatasetReader.from_params(params["dataset_reader"]).read(DEV[task]))[:6]
    with torch.no_grad():
        losses = [model(**make_batch(vocab, [instance]))["loss"] for instance in instances]
        for together in (instances, instances[::-1]):
            loss = model(**make_batch(vocab, together))["loss"]
            torch.testing.assert_close(loss, torch.stack(losses).mean())


# The widths that ELMo at the input widens, and those that ELMo at the output does.
WIDTHS = {
    "coref": lambda m: (m.encoder.get_input_dim(), m.mention_scorer.feedforward.input_dims[1]),
    "ner": lambda m: (m.lower_encoder.get_input_dim(), m.upper_encoder.get_input_dim()),
    "snli": lambda m: (m.encoder.get_input_dim(), m.projection.in_features / 4),
    "squad": lambda m: (m.encoder.get_input_dim(), m.bi_attention.merge.in_features / 4),
    "srl": lambda m: (m.encoder.get_input_dim(), m.tag_projection.in_features),
    "sst": lambda m: (m.feedforward.get_input_dim(), m.classifier.get_input_dim() / 4),
}


@each_of_six
def test_widths_follow_the_placement(task):
    vocab = Vocabulary.from_instances(read(task, "dev", max_instances=6))
    narrow = WIDTHS[task](build(task, vocab))
    for at, added in {"input": (32, 0), "output": (0, 32), "both": (32, 32)}.items():
        widths = WIDTHS[task](build(task, vocab, placement=placement(at)))
        assert widths == tuple(map(sum, zip(narrow, added)))


def lstm(size: int):
    return {"type": "elmo-bilstm", "hidden_size": size}


# Settings, the instances of each batch, rate, number of epochs, and the metric that becomes 1.
LEARNED = {
    "ner": ({"lower_encoder": lstm(32), "upper_encoder": lstm(16), "dropout": 0.0,
             "placement": placement("input")},
            [slice(first, first + 5) for first in range(0, 20, 5)], (0.02, 40),
            "f1-measure-overall"),
    "snli": ({"encoder": lstm(48), "composition_encoder": lstm(48), "feedforward_dim": 48,
              "dropout": 0.0, "placement": placement("both", layer_norm=True)},
             [slice(20)], (0.003, 40), "accuracy"),
    "squad": ({"encoder": {"type": "elmo-bigru", "hidden_size": 24}, "dropout": 0.0,
               "placement": placement("both")},
              [slice(8)], (0.01, 50), "em"),
    "srl": ({"encoder": {"type": "elmo-highway-lstm", "hidden_size": 64, "num_layers": 2,
                         "recurrent_dropout": 0.0}, "placement": placement("input")},
            [slice(20)], (0.01, 60), "f1-measure-overall"),
    "sst": ({"feedforward": {**RELU, "hidden_dims": 32}, "encoder": lstm(16),
             "integrator": lstm(16), "dropout": 0.0, "pooled_dropout": 0.0,
             "classifier": {**RELU, "num_layers": 2, "hidden_dims": [64, 32]},
             "placement": placement("both")},
            [slice(0, 40, 2)], (0.005, 120), "accuracy"),
}  # fmt: skip


@pytest.mark.parametrize("task", LEARNED)
def test_a_small_model_can_learn_a_corpus_by_heart(task):
    torch.manual_seed(1)
    settings, batches, (rate, num_epochs), metric = LEARNED[task]
    instances = read(task)
    vocab = Vocabulary.from_instances(instances)
    model = build(task, vocab, **settings)
    batches = [make_batch(vocab, instances[chosen]) for chosen in batches]
    assert learn(model, batches, rate, num_epochs)[metric] == 1.0


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


# Dependent instances of the dev file: of a document, premise, paragraph and sentence.
NUM_GROUPS = {"ner": 3, "snli": 8, "squad": 4, "srl": 14}


@each_of_six
def test_bootstrap_samples_are_of_dependent_instances(task, trained, tmp_path):
    archive = trained(task)
    instances = list(archive.dataset_reader.read(DEV[task]))
    loader = SimpleDataLoader(instances, 8, vocab=archive.model.vocab)
    path = tmp_path / "samples.json"
    BootstrapEvaluator(num_samples=2)(archive.model, loader, predictions_output_file=path)
    assert json.loads(path.read_text()).get("num_groups") == NUM_GROUPS.get(task)


@pytest.mark.parametrize(
    "task, field, expected",
    [
        ("srl", "tags", "roles (in CoNLL-2012, one column per predicate)"),
        ("ner", "tags", "tags (the last column of CoNLL-2003)"),
        ("sst", "label", "labels (at the nodes of the trees)"),
        ("snli", "label", "labels (the field `gold_label`)"),
        ("squad", "answer_span", "answers (the field `answers` of each question)"),
        ("coref", "gold_mentions", "mentions (the last column of CoNLL-2012)"),
    ],
)
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_training_without_labels_names_the_task_and_what_is_missing(task, field, expected):
    instances = read(task, max_instances=2)
    for instance in instances:
        del instance.fields[field]
    vocab = Vocabulary.from_instances(instances)
    with pytest.raises(ConfigurationError) as error:
        # NER's model needs tags to be built at all.
        build(task, vocab)(**make_batch(vocab, instances, elmo=False))
    assert str(error.value) == (
        f"elmo-{task}: training needs {expected}, but the instances have none. Set "
        "`train_data_path` to a corpus that has them."
    )


@each_task
def test_a_text_in_place_of_an_object_is_answered_with_a_correct_input(task, trained):
    predictor = Predictor.from_archive(trained(task))
    for call in (predictor.predict_json, lambda text: predictor.predict_batch_json([text])):
        with pytest.raises(ValueError, match="expected an object like {.*found A text"):
            call("A text")


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


# A notebook shows the predictions of a task that is added as dictionaries.
@each_of_six
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


WRONG_LINES = {
    "coref": [
        ({"sentence": "A dog."}, 'either "text" or "sentences", found {"sentence": "A dog'),
        ({"text": "A dog.", "sentences": [["A"]]}, 'either "text" or "sentences", found'),
        (
            {"text": ["A", "dog"]},
            '"text" to be some text, found .*"A".* A correct input is',
        ),
        ({"text": " \n"}, '"text" to be some text'),
        ({"text": "A", "speakers": ["Tom"]}, '"speakers" with a name for each of the "sentences"'),
        ({"sentences": []}, '"sentences" to be a list of sentences'),
        ({"sentences": [["A"], []]}, '"sentences" to be a list of sentences'),
        ({"sentences": [["A", ""]]}, '"sentences" to be a list of sentences'),
        ({"sentences": [["A"]], "speakers": [1]}, '"speakers" to be a list of names'),
        ({"sentences": [["A"], ["B"]], "speakers": ["Tom"]}, '"speakers" with a name for each'),
        ({"text": "A", "genre": 3}, '"genre" to be some text, .*found 3'),
        ({"text": "A", "id": ""}, '"id" to be some text, .*found ""'),
    ],
    "ner": [
        ({"text": "Ada"}, '"sentence" with a text or "tokens" with a list of words'),
        ({"tokens": ["Ada", ""]}, "a list of words, none of them empty"),
        ({"tokens": "Ada"}, '"tokens" to be a list of words'),
        ({"tokens": []}, '"tokens" to be a list of words'),
        ({"sentence": " "}, '"sentence" to be some text'),
    ],
    "snli": [
        ({"premise": "A dog runs."}, 'expected "hypothesis" .* or "hypothesis_tokens"'),
        ({"premise": "", "hypothesis": "It moves."}, '"premise" to be some text'),
        ({"premise": "A dog.", "hypothesis_tokens": "It moves"}, "a list of words"),
        ({"sentence1": "A dog."}, 'expected "sentence2" with a sentence'),
        ({"sentence1": "A dog.", "sentence2": ""}, "expected at least one word in each"),
    ],
    "squad": [
        ({"passage": "Tea."}, 'a "passage" and a "question", found {"passage": "Tea."}'),
        ({"passage": "Tea.", "question": " "}, '"question" to be some text, .*found " "'),
        ({"passage": ["Tea"], "question": "Who?"}, '"passage" to be some text'),
        ({"passage": "Tea.", "question": "Who?", "id": 7}, '"id" to be text, .*found 7'),
    ],
    "srl": [
        ({"text": "They play"}, 'expected "sentence" with a text or "tokens"'),
        ({"tokens": [1, 2]}, "a list of words"),
        ({"tokens": ["They", ""]}, "none of them empty"),
        ({"sentence": ["They"]}, '"sentence" to be a text'),
        ({"sentence": "They play", "predicates": [True]}, "a list of positions or words, or"),
        ({"sentence": "They play", "predicates": ""}, "a list of positions or words, or"),
        ({"tokens": ["They"], "predicates": [-1]}, "a list of positions or words, or"),
        ({"sentence": "They play", "predicates": [1, 2]}, "from 0 in 'They play', found 2"),
        ({"sentence": "They play", "predicates": ["plays"]}, "in 'They play', found \"plays\""),
        ({"sentence": " ", "predicates": [0]}, "from 0 in '', found 0"),
    ],
}


@pytest.mark.parametrize(
    "task, line, message",
    [
        *((task, "A quiet film.", "a JSON object like {.*, found 'A quiet film.'") for task in DEV),
        ("sst", '{"sentence": "A qui', "cut off"),
        ("sst", "[1]", "expected a JSON object like {.*, found"),
        *(
            (task, json.dumps(line), message)
            for task, cases in WRONG_LINES.items()
            for line, message in cases
        ),
    ],
)
def test_a_wrong_line_is_named_by_its_number(task, trained, line, message):
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


@pytest.mark.parametrize(
    "task, line, message",
    [
        ("coref", {"sentences": [["New York"]]}, "words without spaces, found 'New York'"),
        ("coref", {"text": "Yes.", "id": "a b"}, "document names without spaces .* found 'a b'"),
        ("ner", {"tokens": ["New York"]}, "words without spaces .* found 'New York'"),
        ("ner", {"tokens": ["-DOCSTART-"]}, "words .* that do not start with -DOCSTART-"),
        ("srl", {"tokens": ["Go"], "predicates": [0]}, "predicates at different words"),
    ],
)
def test_a_prediction_that_columns_cannot_hold_is_shown(task, trained, line, message):
    predictor = Predictor.from_archive(trained(task), extra_args={"output_format": "conll"})
    output = predictor.predict_json(line)
    if task == "srl":
        # A corpus may have two predicates at one word.
        output["frames"] *= 2
    with pytest.raises(ValueError, match=f"^{{.*: expected {message}.* Use JSON output instead"):
        predictor.dump_line(output)
