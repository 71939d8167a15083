import json
import random

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.evaluation import Evaluator
from allennlp.models import Model
from allennlp.training.metrics import CategoricalAccuracy, FBetaMeasure

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.tasks.coref import CorefScores
from elmo_plugin.tasks.ner.metric import EntityF1
from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.tasks.srl.metric import SrlSpanF1

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
NUM_SAMPLES = 20


class Scored(Model):
    """Its batches are the arguments of its metric, and metadata."""

    group_key = "letter"

    def __init__(self, metric):
        super().__init__(Vocabulary())
        self.metric = metric

    def forward(self, metadata=(), **arguments):
        self.metric(*arguments.values())
        return {}

    def get_metrics(self, reset=False):
        found = self.metric.get_metric(reset)
        return found if isinstance(found, dict) else {"accuracy": found}


class Batches(list):
    def set_target_device(self, device):
        pass


def tags(generator):
    return generator.choices(TAGS, k=6)


def clusters(generator):
    mentions = [(n, n) for n in range(8)]
    generator.shuffle(mentions)
    return [mentions[:2], mentions[2:5]]


def labels(generator):
    return torch.tensor([generator.random(), generator.random()])


class MacroF1(FBetaMeasure):
    """Its counts are tensors with a number per class."""

    def __init__(self):
        super().__init__(average="macro")


KINDS = {
    EntityF1: (tags, tags),
    SrlSpanF1: (tags, tags),
    SquadScores: (
        lambda generator: generator.choice(["one two", "two", "three"]),
        lambda generator: generator.sample(["one two", "two", "three", "four"], 2),
    ),
    CorefScores: (clusters, clusters, lambda generator: [(1, 1), (2, 2)]),
    CategoricalAccuracy: (labels, lambda generator: torch.tensor(generator.randrange(2))),
    MacroF1: (labels, lambda generator: torch.tensor(generator.randrange(2))),
}


def joined(values):
    return torch.stack(values) if isinstance(values[0], torch.Tensor) else values


def evaluate(kind, instances, batch_size, path, groups):
    evaluator = Evaluator.from_params(
        Params({"type": "elmo-bootstrap", "num_samples": NUM_SAMPLES, "cuda_device": -1})
    )
    batches = Batches()
    for start in range(0, len(instances), batch_size):
        part = slice(start, start + batch_size)
        batch = {str(n): joined(list(values)) for n, values in enumerate(zip(*instances[part]))}
        batches.append({**batch, "metadata": [{"letter": letter} for letter in groups[part]]})
    model = Scored(kind())
    metrics = evaluator(model, batches, predictions_output_file=str(path))
    assert type(model.metric) is kind
    return metrics, json.loads(path.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_the_metrics_of_the_drawn_instances_and_groups(kind, tmp_path):
    generator = random.Random(1)
    instances = [tuple(make(generator) for make in KINDS[kind]) for _ in range(13)]
    letters = "cabbacaddaabc"
    metrics, written = evaluate(kind, instances, 4, tmp_path / "samples.json", letters)
    assert (written["num_instances"], written["num_groups"]) == (13, 4)
    whole = Scored(kind())
    whole.metric(*map(joined, map(list, zip(*instances))))
    assert metrics == pytest.approx(whole.get_metrics(reset=True))
    of_letters = [[one for one, each in zip(instances, letters) if each == x] for x in "abcd"]
    units = {"metrics": [[one] for one in instances], "group_metrics": of_letters}
    for name, parts in units.items():
        draws = numpy.random.default_rng(0)
        for number in range(NUM_SAMPLES):
            places = draws.integers(len(parts), size=len(parts))
            drawn = [one for place in places for one in parts[place]]
            model = Scored(kind())
            model.metric(*map(joined, map(list, zip(*drawn))))
            for metric, value in model.get_metrics(reset=True).items():
                assert written[name][metric][number] == pytest.approx(value, abs=1e-6), metric


def test_samples_do_not_depend_on_batches(tmp_path):
    generator = random.Random(2)
    instances = [(tags(generator), tags(generator)) for _ in range(9)]
    found = [
        evaluate(EntityF1, instances, size, tmp_path / f"{size}.json", "aabcacbbd")
        for size in (1, 4, 9)
    ]
    assert found[0] == found[1] == found[2]


def test_models_get_the_same_samples_of_groups_whatever_the_order_of_their_batches(tmp_path):
    generator = random.Random(3)
    rows = [(tags(generator), tags(generator), letter) for letter in "aabcacbbd"]
    first, second = [], []
    for number, found in enumerate((first, second)):
        instances = [row[:2] for row in rows]
        letters = [row[2] for row in rows]
        written = evaluate(EntityF1, instances, 4, tmp_path / f"{number}.json", letters)[1]
        found += [written["group_metrics"], written["metrics"]]
        generator.shuffle(rows)
    assert first[0] == second[0] and first[1] != second[1]


@pytest.mark.parametrize("letters", ["aaaa", "abcd"])
def test_one_group_or_one_per_instance_is_left_out(letters, tmp_path):
    instances = [(TAGS, TAGS)] * 4
    _, written = evaluate(EntityF1, instances, 4, tmp_path / "samples.json", letters)
    assert set(written) == {"num_instances", "metrics"}


def test_a_file_without_labels_is_refused(tmp_path):
    evaluator = Evaluator.from_params(Params({"type": "elmo-bootstrap", "cuda_device": -1}))
    model = Scored(EntityF1())
    assert evaluator(model, Batches()) is not None
    with pytest.raises(ConfigurationError, match="expected instances with labels, found none"):
        evaluator(model, Batches(), predictions_output_file=str(tmp_path / "samples.json"))
