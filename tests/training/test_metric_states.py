"""The states of metrics, written to a file and read again."""

import re
from collections import Counter, defaultdict, deque
from typing import NamedTuple

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.training.metrics import CategoricalAccuracy, Metric, SpanBasedF1Measure

from elmo_plugin.tasks.bilm.metric import PerplexityMetric
from elmo_plugin.tasks.coref.metric import CorefScores
from elmo_plugin.tasks.ner.metric import EntityF1
from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.tasks.srl.metric import SrlSpanF1
from elmo_plugin.training.metric_states import load_metric_states, metric_states

TAGS = ["B-A0", "I-A0", "B-V", "O", "B-A1"]


def vocabulary():
    vocab = Vocabulary()
    for tag in TAGS:
        vocab.add_token_to_namespace(tag, "tags")
    return vocab


def spans(metric, first):
    # Shape: (1, num_tokens, num_classes)
    logits = torch.eye(len(TAGS)).roll(first, dims=0).unsqueeze(0)
    metric(logits, torch.arange(len(TAGS)).unsqueeze(0))


# How each metric is updated; the number of the batch makes batches different.
METRICS = {
    CategoricalAccuracy: lambda metric, n: metric(torch.eye(3)[: n + 1], torch.zeros(n + 1).long()),
    SpanBasedF1Measure: spans,
    PerplexityMetric: lambda metric, n: metric(
        ("forward", "backward")[n % 2], torch.tensor(0.3 + n), 2
    ),
    CorefScores: lambda metric, n: metric([[[(0, 1), (2, 2)]]], [[[(0, 1), (2, n)]]], [[(0, 1)]]),
    EntityF1: lambda metric, n: metric([TAGS], [TAGS[n:] + TAGS[:n]]),
    SquadScores: lambda metric, n: metric(["one two", "three"], [["one"] * n + ["two"], ["three"]]),
    SrlSpanF1: lambda metric, n: metric([TAGS], [TAGS[n:] + TAGS[:n]]),
}


class Measured(Model):
    def __init__(self, metric: Metric) -> None:
        super().__init__(vocabulary())
        self.inner = torch.nn.Module()
        self.inner.metrics = {"some": [metric]}
        self.metric = metric


def make(kind):
    return kind(vocabulary()) if kind is SpanBasedF1Measure else kind()


@pytest.mark.parametrize("kind", METRICS, ids=lambda kind: kind.__name__)
def test_a_restored_metric_continues_counting(tmp_path, kind):
    whole, first, second = make(kind), make(kind), make(kind)
    feed = METRICS[kind]
    for number in (0, 1, 2):
        feed(whole, number)
    feed(first, 0)
    feed(first, 1)
    torch.save(metric_states(Measured(first)), tmp_path / "state")
    feed(second, 2)
    load_metric_states(Measured(second), torch.load(tmp_path / "state", weights_only=True))
    assert second.get_metric(reset=False) == first.get_metric(reset=False)
    feed(second, 2)
    assert second.get_metric(reset=True) == whole.get_metric(reset=True)


class Counts:
    def __init__(self) -> None:
        self.by_label = defaultdict(int)


class Nested(Metric):
    """Has objects, whose classes must be kept, and attributes that are not counts."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.parts = [Counts(), Counts()]
        self.kinds = (Counter(), Counter())
        self.seen = []
        self.vocab, self.weigh, self.layer = vocab, lambda value: value, torch.nn.Linear(1, 1)


def test_objects_keep_their_classes_and_what_is_no_count_stays_out(tmp_path):
    one, other = Nested(vocabulary()), Nested(vocabulary())
    one.parts[1].by_label["A"] += 2
    one.kinds[0]["B"] += 1
    one.seen += [1.5, torch.tensor(2)]
    states = metric_states(Measured(one))
    assert states[".metric"].keys() == {"parts", "kinds", "seen"}
    torch.save(states, tmp_path / "state")
    load_metric_states(Measured(other), torch.load(tmp_path / "state", weights_only=True))
    other.parts[1].by_label["new"] += 1
    assert other.parts[1].by_label == {"A": 2, "new": 1}
    assert other.kinds == (Counter("B"), Counter()) and other.kinds[0]["missing"] == 0
    assert other.seen == [1.5, torch.tensor(2)]


class Totals(NamedTuple):
    right: int
    all: int


class Various(Metric):
    """Has attributes of kinds that metrics of other projects may have."""

    def __init__(self) -> None:
        self.confusion = numpy.zeros((2, 2), dtype=numpy.int64)
        self.by_label = defaultdict(Counter)
        self.totals = Totals(0, 0)
        self.score = numpy.float64(0.0)
        self.mixed = [len, 0]
        self.named = {"function": len, "count": 0}
        self.pattern = re.compile("a")

    def __call__(self, label: str) -> None:
        self.confusion[0, 1] += 1
        self.by_label[label]["right"] += 1
        self.totals = Totals(self.totals.right + 1, self.totals.all + 2)
        self.score = numpy.float64(self.score + 0.1)
        self.mixed[1] += 1
        self.named["count"] += 1
        if not hasattr(self, "pairs"):
            self.pairs, self.arrays = [], []
        self.pairs.append((label, numpy.int64(1)))
        self.arrays.append(numpy.array([0.5, 1.5]))

    def everything(self):
        arrays = [(array.dtype, array.tolist()) for array in (self.confusion, *self.arrays)]
        others = (self.by_label, self.totals, self.score, self.mixed, self.named, self.pairs)
        return arrays, others


def test_arrays_and_what_appears_while_counting_are_kept(tmp_path):
    one, other = Various(), Various()
    one("A")
    torch.save(metric_states(Measured(one)), tmp_path / "state")
    load_metric_states(Measured(other), torch.load(tmp_path / "state", weights_only=True))
    assert other.everything() == one.everything()
    for metric in (one, other):
        metric("A")
        metric("B")
    assert other.everything() == one.everything()
    assert type(other.by_label["A"]) is Counter and type(other.totals) is Totals


@pytest.mark.parametrize(
    "value, found", [(deque([1]), "deque"), (numpy.array(["a"]), "array of <U1"), (1j, "complex")]
)
def test_attributes_that_cannot_be_stored_are_named(value, found):
    metric = Various()
    metric.last = {"a": [value]}
    with pytest.raises(ConfigurationError, match=rf"Various\.last\['a'\]\[0\].* found {found},"):
        metric_states(Measured(metric))


def test_an_object_that_a_new_metric_lacks_is_named():
    metric = Various()
    metric.late = Counts()
    states = metric_states(Measured(metric))
    with pytest.raises(
        ConfigurationError, match=r"Various\.late: expected a Counts to .* NoneType"
    ):
        load_metric_states(Measured(Various()), states)


def test_a_metric_that_the_checkpoint_lacks_is_named():
    with pytest.raises(ConfigurationError, match=r"state of the metric \.metric in .* only \.old"):
        load_metric_states(Measured(Various()), {".old": {}})
