from itertools import product
from typing import List, Tuple

import pytest
import torch

from elmo_plugin.modules.viterbi import decode

NEVER = float("-inf")
NUM_LABELS = 4
Scores = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def random_batch(
    lengths: List[int], num_labels: int = NUM_LABELS
) -> Tuple[torch.Tensor, torch.Tensor]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return 3 * torch.randn(*mask.shape, num_labels), mask


def random_transitions(num_labels: int = NUM_LABELS) -> Scores:
    """Of a start, a transition and an end; a third of the latter two are forbidden."""
    transitions = 3 * torch.randn(num_labels, num_labels)
    ends = 3 * torch.randn(num_labels)
    transitions[torch.rand_like(transitions) < 0.3] = NEVER
    ends[1] = NEVER
    # One label may stand anywhere, so that there is always a legal sequence.
    transitions[0, :] = transitions[:, 0] = ends[0] = -1.0
    return 3 * torch.randn(num_labels), transitions, ends


def total(
    scores: torch.Tensor,
    labels: Tuple[int, ...],
    starts: torch.Tensor,
    transitions: torch.Tensor,
    ends: torch.Tensor,
) -> float:
    result = starts[labels[0]].item() + ends[labels[-1]].item()
    result += sum(score[label].item() for score, label in zip(scores, labels))
    return result + sum(transitions[pair].item() for pair in zip(labels, labels[1:]))


@pytest.mark.parametrize("seed", range(3))
def test_decodes_the_best_of_all_sequences(seed):
    torch.manual_seed(seed)
    given = random_transitions()
    for lengths in ([4, 0, 2, 5], [1], [3, 3, 1]):
        scores, mask = random_batch(lengths)
        expected = [
            list(
                max(
                    product(range(NUM_LABELS), repeat=length),
                    key=lambda labels: total(sentence, labels, *given),
                )
            )
            if length
            else []
            for sentence, length in zip(scores, lengths)
        ]
        assert decode(scores, mask, *given) == expected


def test_padding_and_batch_order_change_nothing():
    torch.manual_seed(0)
    scores, mask = random_batch([4, 0, 2, 5])
    given = random_transitions()
    decoded = decode(scores, mask, *given)
    assert [len(sequence) for sequence in decoded] == [4, 0, 2, 5]
    scores[~mask] = float("nan")
    order = torch.tensor([2, 3, 0, 1])
    assert decode(scores[order], mask[order], *given) == [decoded[row] for row in order]
    wider = torch.nn.functional.pad(scores, (0, 0, 0, 3), value=float("nan"))
    assert decode(wider, torch.nn.functional.pad(mask, (0, 3)), *given) == decoded
    for row in range(4):
        alone = decode(scores[row : row + 1], mask[row : row + 1], *given)
        assert alone == decoded[row : row + 1]


@pytest.mark.parametrize("score", [NEVER, float("inf"), float("nan"), 1e38, -1e38])
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float, torch.double])
def test_never_returns_what_is_forbidden(score, dtype):
    torch.manual_seed(0)
    scores, mask = random_batch([6] * 50)
    starts, transitions, ends = random_transitions()
    starts[2] = NEVER
    scores[torch.rand_like(scores) < 0.5] = score
    for labels in decode(scores.to(dtype), mask, starts, transitions, ends):
        assert starts[labels[0]] > NEVER and ends[labels[-1]] > NEVER
        assert all(transitions[pair] > NEVER for pair in zip(labels, labels[1:]))


def test_the_lowest_label_wins_a_tie():
    mask = torch.ones(2, 4, dtype=torch.bool)
    ties, zeros, transitions = torch.zeros(2, 4, 3), torch.zeros(3), torch.zeros(3, 3)
    assert decode(ties, mask, zeros, transitions, zeros) == [[0] * 4] * 2
    # Label 2 only after label 1 or itself.
    transitions[0, 2] = NEVER
    ties[:, 2, 2] = 1
    assert decode(ties, mask, zeros, transitions, zeros) == [[0, 1, 2, 0]] * 2


def test_a_batch_without_tokens_gives_empty_sequences():
    given = random_transitions()
    for shape in ((2, 0), (0, 3), (2, 3)):
        mask = torch.zeros(shape, dtype=torch.bool)
        assert decode(torch.zeros(*shape, NUM_LABELS), mask, *given) == [[]] * shape[0]
