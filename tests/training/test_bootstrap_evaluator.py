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
    """Its batches are the arguments of its metric."""

    def __init__(self, metric):
        super().__init__(Vocabulary())
        self.metric = metric

    def forward(self, **arguments):
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


def evaluate(kind, instances, batch_size, path):
    evaluator = Evaluator.from_params(
        Params({"type": "elmo-bootstrap", "num_samples": NUM_SAMPLES, "cuda_device": -1})
    )
    batches = Batches(
        {
            str(number): joined(list(values))
            for number, values in enumerate(zip(*instances[start : start + batch_size]))
        }
        for start in range(0, len(instances), batch_size)
    )
    model = Scored(kind())
    metrics = evaluator(model, batches, predictions_output_file=str(path))
    assert type(model.metric) is kind
    return metrics, json.loads(path.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_the_metrics_of_the_drawn_instances(kind, tmp_path):
    generator = random.Random(1)
    instances = [tuple(make(generator) for make in KINDS[kind]) for _ in range(13)]
    metrics, written = evaluate(kind, instances, 4, tmp_path / "samples.json")
    assert written["num_instances"] == 13
    whole = Scored(kind())
    whole.metric(*map(joined, map(list, zip(*instances))))
    assert metrics == pytest.approx(whole.get_metrics(reset=True))
    draws = numpy.random.default_rng(0)
    for number in range(NUM_SAMPLES):
        drawn = [instances[place] for place in draws.integers(13, size=13)]
        model = Scored(kind())
        model.metric(*map(joined, map(list, zip(*drawn))))
        for name, value in model.get_metrics(reset=True).items():
            assert written["metrics"][name][number] == pytest.approx(value, abs=1e-6), name


def test_samples_do_not_depend_on_batches(tmp_path):
    generator = random.Random(2)
    instances = [(tags(generator), tags(generator)) for _ in range(9)]
    found = [evaluate(EntityF1, instances, size, tmp_path / f"{size}.json") for size in (1, 4, 9)]
    assert found[0] == found[1] == found[2]


def test_a_file_without_labels_is_refused(tmp_path):
    evaluator = Evaluator.from_params(Params({"type": "elmo-bootstrap", "cuda_device": -1}))
    model = Scored(EntityF1())
    assert evaluator(model, Batches()) is not None
    with pytest.raises(ConfigurationError, match="expected instances with labels, found none"):
        evaluator(model, Batches(), predictions_output_file=str(tmp_path / "samples.json"))
