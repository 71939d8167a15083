import pytest
import torch

from elmo_plugin.tasks.coref.scoring import ScoringSettings
from elmo_plugin.tasks.coref.spans import SpanReader, spans_within
from tests.tasks.coref.oracle import every_span, network, span_vector


def pairs(spans):
    return list(zip(spans.starts.tolist(), spans.ends.tolist()))


@pytest.mark.parametrize("max_width", [1, 2, 3, 10])
@pytest.mark.parametrize("lengths", [[4, 1, 12, 3], [1], [1, 1, 1], [0, 2, 0, 5, 0]])
def test_spans_are_those_of_a_plain_loop(lengths, max_width):
    spans = spans_within(torch.tensor(lengths), max_width)
    assert pairs(spans) == every_span(lengths, max_width)


@pytest.fixture
def reader():
    torch.manual_seed(0)
    settings = ScoringSettings(max_span_width=4, feedforward_dim=7, feature_dim=3)
    reader = SpanReader(6, 5, settings).double().eval()
    for layer in (reader.layers.first, reader.layers.second, reader.layers.last):
        torch.nn.init.normal_(layer.bias)
    # Far from the mean of a span's tokens.
    torch.nn.init.normal_(reader.head.weight, std=3.0)
    return reader


@pytest.fixture
def text():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randn(14, 11, generator=generator, dtype=torch.float64, requires_grad=True)
    return tokens[:, :6], tokens[:, 6:], tokens


@pytest.mark.parametrize("lengths", [[6, 1, 7], [1] * 14])
def test_vectors_and_scores_are_those_of_a_plain_loop_and_so_are_gradients(reader, text, lengths):
    encoded, embedded, tokens = text
    spans = spans_within(torch.tensor(lengths), reader.max_width)
    scores, vectors = reader(encoded, embedded, spans)
    expected_vectors = torch.stack(
        [span_vector(reader, encoded, embedded, span) for span in every_span(lengths, 4)]
    )
    expected_scores = torch.stack([network(reader.layers, one) for one in expected_vectors])
    some = torch.tensor([9, 0, 3])
    torch.testing.assert_close(vectors.heads_and_widths(some), expected_vectors[some, 12:])
    torch.testing.assert_close(scores, expected_scores)

    learned = [tokens, *reader.parameters()]
    weights = torch.randn_like(scores)
    found = torch.autograd.grad(
        (scores * weights).sum() + vectors.heads_and_widths(some).sin().sum(), learned
    )
    wanted = torch.autograd.grad(
        (expected_scores * weights).sum() + expected_vectors[some, 12:].sin().sum(), learned
    )
    torch.testing.assert_close(found, wanted)


def test_head_scores_far_apart_give_numbers(reader, text):
    encoded, embedded, _ = text
    spans = spans_within(torch.tensor([14]), reader.max_width)
    scores, vectors = reader(encoded.detach() * 1e4, embedded.detach(), spans)
    assert scores.isfinite().all() and vectors.weights.sum(dim=1).allclose(torch.ones(()).double())


def test_what_a_span_has_does_not_depend_on_its_neighbours(reader, text):
    encoded, embedded, _ = text
    spans = spans_within(torch.tensor([14]), reader.max_width)
    scores, _ = reader(encoded, embedded, spans)
    alone, _ = reader(encoded[3:6], embedded[3:6], spans_within(torch.tensor([3]), 4))
    places = [pairs(spans).index((3 + start, 3 + end)) for start, end in every_span([3], 4)]
    torch.testing.assert_close(scores[places], alone)
