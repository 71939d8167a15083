import pytest
import torch

from elmo_plugin.tasks.coref.mentions import Spans, enumerate_spans, prune_spans
from tests.tasks.coref.oracle import every_span, greedy


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


@pytest.mark.parametrize(
    "better, worse, kept",
    [
        ((2, 5), (4, 7), [0]),
        ((4, 7), (2, 5), [1]),
        ((2, 5), (5, 6), [0]),
        ((2, 5), (3, 5), [0, 1]),
        ((2, 5), (2, 3), [0, 1]),
        ((2, 5), (3, 4), [0, 1]),
        ((2, 5), (6, 7), [0, 1]),
    ],
)
def test_crossing_spans_are_skipped_and_nested_ones_kept(better, worse, kept):
    (first, first_score), (second, second_score) = sorted([(better, 2.0), (worse, 1.0)])
    spans = Spans(torch.tensor([first[0], second[0]]), torch.tensor([first[1], second[1]]))
    assert prune_spans(spans, torch.tensor([first_score, second_score]), 2).tolist() == kept
