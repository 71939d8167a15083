import pytest
import torch

from elmo_plugin.tasks.coref.mentions import (
    MentionScorer,
    ScoringSettings,
    enumerate_spans,
    prune_spans,
)
from tests.tasks.coref.oracle import every_span, greedy, network, span_vector


def pairs(spans):
    return list(zip(spans.starts.tolist(), spans.ends.tolist()))


@pytest.mark.parametrize("max_width", [1, 2, 3, 10])
@pytest.mark.parametrize("lengths", [[4, 1, 12, 3], [1], [1, 1, 1], [0, 2, 0, 5, 0]])
def test_spans_are_those_of_a_plain_loop(lengths, max_width):
    spans = enumerate_spans(torch.tensor(lengths), max_width)
    assert pairs(spans) == every_span(lengths, max_width)


@pytest.fixture
def scorer():
    torch.manual_seed(0)
    settings = ScoringSettings(max_span_width=4, feedforward_dim=7, feature_dim=3)
    scorer = MentionScorer(6, 5, settings).double().eval()
    layers = scorer.feedforward
    for layer in (layers.input_layer, layers.hidden_layer, layers.output_layer):
        torch.nn.init.normal_(layer.bias)
    # Far from the mean of a span's tokens.
    torch.nn.init.normal_(scorer.head_attention.weight, std=3.0)
    return scorer


@pytest.fixture
def text():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randn(14, 11, generator=generator, dtype=torch.float64, requires_grad=True)
    return tokens[:, :6], tokens[:, 6:], tokens


@pytest.mark.parametrize("lengths", [[6, 1, 7], [1] * 14])
def test_vectors_and_scores_are_those_of_a_plain_loop_and_so_are_gradients(scorer, text, lengths):
    encoded, embedded, tokens = text
    spans = enumerate_spans(torch.tensor(lengths), scorer.max_width)
    scores, vectors = scorer(encoded, embedded, spans)
    expected_vectors = torch.stack(
        [span_vector(scorer, encoded, embedded, span) for span in every_span(lengths, 4)]
    )
    expected_scores = torch.stack([network(scorer.feedforward, one) for one in expected_vectors])
    some = torch.tensor([9, 0, 3])
    torch.testing.assert_close(vectors.heads_and_widths(some), expected_vectors[some, 12:])
    torch.testing.assert_close(scores, expected_scores)

    learned = [tokens, *scorer.parameters()]
    weights = torch.randn_like(scores)
    found = torch.autograd.grad(
        (scores * weights).sum() + vectors.heads_and_widths(some).sin().sum(), learned
    )
    wanted = torch.autograd.grad(
        (expected_scores * weights).sum() + expected_vectors[some, 12:].sin().sum(), learned
    )
    torch.testing.assert_close(found, wanted)


def test_head_scores_far_apart_give_numbers(scorer, text):
    encoded, embedded, _ = text
    spans = enumerate_spans(torch.tensor([14]), scorer.max_width)
    scores, vectors = scorer(encoded.detach() * 1e4, embedded.detach(), spans)
    assert scores.isfinite().all() and vectors.weights.sum(dim=1).allclose(torch.ones(()).double())


@pytest.mark.parametrize("number", [1, 5, 12, 30, 1000])
@pytest.mark.parametrize("lengths", [[30], [12, 1, 9, 20], [1] * 8, [1]])
def test_chooses_what_a_plain_greedy_loop_chooses(lengths, number):
    generator = torch.Generator().manual_seed(0)
    spans, plain = enumerate_spans(torch.tensor(lengths), 6), every_span(lengths, 6)
    for _ in range(20):
        scores = torch.randn(len(plain), generator=generator)
        assert prune_spans(spans, scores, number).tolist() == greedy(plain, scores, number)


@pytest.mark.parametrize("direction", [1, -1])
def test_long_chains_of_crossing_spans_are_resolved(direction):
    spans, plain = enumerate_spans(torch.tensor([60]), 5), every_span([60], 5)
    scores = direction * torch.arange(len(plain))
    assert prune_spans(spans, scores, 40).tolist() == greedy(plain, scores, 40)


def test_of_equal_scores_the_first_is_chosen():
    spans, plain = enumerate_spans(torch.tensor([9]), 4), every_span([9], 4)
    scores = torch.tensor([0.0, 1.0]).repeat(len(plain))[: len(plain)]
    assert prune_spans(spans, scores, 6).tolist() == greedy(plain, scores, 6)
