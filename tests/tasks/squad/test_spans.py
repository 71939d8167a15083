import pytest
import torch

from elmo_plugin.tasks.squad.model import best_spans
from tests.tasks.squad import oracle


@pytest.mark.parametrize("max_length", [1, 3, 17])
@pytest.mark.parametrize("num_best", [1, 5, 200])
def test_the_best_spans_are_those_of_a_search_through_all(max_length, num_best):
    torch.manual_seed(0)
    lengths = [1, 12, 5, 30]
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    logits = 3 * torch.randn(2, *mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    spans, probabilities = best_spans(*logits, max_length, num_best)
    assert spans.shape == (4, num_best, 2) and probabilities.shape == (4, num_best)
    for row, length in enumerate(lengths):
        starts, ends = logits[:, row, :length].tolist()
        expected = oracle.spans(starts, ends, max_length)[:num_best]
        missing = num_best - len(expected)
        expected += [(0.0, -1, -1)] * missing
        assert spans[row].tolist() == [[first, last] for _, first, last in expected]
        wanted = torch.tensor([each[0] for each in expected], dtype=torch.float64)
        torch.testing.assert_close(probabilities[row], wanted)


def test_probabilities_of_all_spans_add_up_to_one():
    torch.manual_seed(0)
    _, probabilities = best_spans(*torch.randn(2, 3, 9), 4, 9 * 4)
    torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(3))
    assert ((probabilities > 0).sum(dim=1) == 9 * 4 - 6).all()


def test_the_best_start_and_end_need_not_make_the_best_span():
    starts = torch.tensor([[0.0, 0.0, 5.0]])
    ends = torch.tensor([[6.0, 0.0, 4.0]])
    spans, _ = best_spans(starts, ends, 3, 2)
    assert spans.tolist() == [[[2, 2], [0, 0]]]
    # One that is too long is no answer.
    spans, _ = best_spans(torch.tensor([[9.0, 0.0, 1.0]]), torch.tensor([[0.0, 0.0, 9.0]]), 2, 1)
    assert spans.tolist() == [[[2, 2]]]


def test_tokens_of_a_long_passage_are_not_paired_with_each_other():
    # All pairs would be 160 GB.
    logits = torch.randn(2, 1, 200_000)
    spans, _ = best_spans(*logits, 17, 20)
    assert bool(((spans[..., 1] - spans[..., 0]) < 17).all())


def test_a_model_that_has_diverged_finds_nothing():
    logits = torch.full((2, 5), torch.nan)
    logits[1] = torch.arange(5.0)
    spans, probabilities = best_spans(logits, logits, max_length=3, num_best=2)
    assert (spans[0] == -1).all() and spans[1, 0].tolist() == [4, 4]
    assert probabilities[0].isnan().all()
