from itertools import product
from typing import Dict, List

import pytest
import torch
from allennlp.nn.util import viterbi_decode

from elmo_plugin.tasks.srl.decoding import bio_constraints, decode

LABELS = {0: "O", 1: "B-A", 2: "I-A", 3: "I-B", 4: "B-B"}


def is_legal(tags: List[str]) -> bool:
    return all(
        not tag.startswith("I-") or previous[2:] == tag[2:]
        for previous, tag in zip(["O"] + tags, tags)
    )


def best_by_enumeration(log_probabilities: torch.Tensor) -> List[int]:
    """Scores every legal sequence."""
    legal = [
        sequence
        for sequence in product(LABELS, repeat=len(log_probabilities))
        if is_legal([LABELS[label] for label in sequence])
    ]
    steps = torch.arange(len(log_probabilities))
    return list(max(legal, key=lambda labels: log_probabilities[steps, list(labels)].sum().item()))


def random_batch(lengths: List[int], num_labels: int, dtype: torch.dtype = torch.float):
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    scores = 3 * torch.randn(*mask.shape, num_labels, dtype=dtype)
    return scores.log_softmax(dim=2), mask


def many_labels(num_roles: int) -> Dict[int, str]:
    tags = ["O"] + [f"{prefix}-ARG{role}" for role in range(num_roles) for prefix in "BI"]
    return dict(enumerate(tags))


def test_constraints_forbid_an_inside_without_its_beginning():
    start_scores, transition_scores = bio_constraints(LABELS)
    never = float("-inf")
    assert start_scores.tolist() == [0, 0, never, never, 0]
    assert transition_scores.tolist() == [
        [0, 0, never, never, 0],
        [0, 0, 0, never, 0],
        [0, 0, 0, never, 0],
        [0, 0, never, 0, 0],
        [0, 0, never, 0, 0],
    ]


def test_decodes_the_best_of_all_legal_sequences():
    torch.manual_seed(0)
    for lengths in ([4, 0, 2, 5], [1], [3, 3, 1]):
        log_probabilities, mask = random_batch(lengths, len(LABELS))
        expected = [
            best_by_enumeration(scores[:length]) if length else []
            for scores, length in zip(log_probabilities, lengths)
        ]
        assert decode(log_probabilities, mask, *bio_constraints(LABELS)) == expected


def test_equals_allennlp():
    torch.manual_seed(0)
    lengths = [25, 7, 1, 18]
    start_scores, transition_scores = bio_constraints(many_labels(20))
    log_probabilities, mask = random_batch(lengths, len(start_scores))
    decoded = decode(log_probabilities, mask, start_scores, transition_scores)
    # Told of the start itself, AllenNLP adds 100,000 to every score, which rounds close calls.
    log_probabilities[:, 0] += start_scores
    for sequence, scores, length in zip(decoded, log_probabilities, lengths):
        assert sequence == viterbi_decode(scores[:length], transition_scores)[0]


def test_padding_and_batch_order_change_nothing():
    torch.manual_seed(0)
    log_probabilities, mask = random_batch([4, 0, 2, 5], len(LABELS))
    constraints = bio_constraints(LABELS)
    decoded = decode(log_probabilities, mask, *constraints)
    assert [len(sequence) for sequence in decoded] == [4, 0, 2, 5]
    log_probabilities[~mask] = float("nan")
    order = torch.tensor([2, 3, 0, 1])
    reordered = decode(log_probabilities[order], mask[order], *constraints)
    assert reordered == [decoded[row] for row in order]
    for row in range(4):
        alone = decode(log_probabilities[row : row + 1], mask[row : row + 1], *constraints)
        assert alone == decoded[row : row + 1]


@pytest.mark.parametrize("score", [float("-inf"), float("inf"), float("nan"), 1e38, -1e38])
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.float, torch.double])
def test_never_returns_an_illegal_sequence(score, dtype):
    torch.manual_seed(0)
    log_probabilities, mask = random_batch([6] * 50, len(LABELS), torch.float)
    log_probabilities[torch.rand_like(log_probabilities) < 0.5] = score
    decoded = decode(log_probabilities.to(dtype), mask, *bio_constraints(LABELS))
    assert all(is_legal([LABELS[label] for label in sequence]) for sequence in decoded)


def test_an_impossible_label_is_avoided_and_leaves_the_others_exact():
    log_probabilities = torch.tensor([[[0.5, float("-inf"), 0.4, 0.3, 0.6], [0, 0, 9, 8, 0]]])
    mask = torch.ones(1, 2, dtype=torch.bool)
    assert decode(log_probabilities, mask, *bio_constraints(LABELS)) == [[4, 3]]


def test_the_lowest_label_wins_a_tie():
    mask = torch.ones(2, 4, dtype=torch.bool)
    ties = torch.zeros(2, 4, len(LABELS))
    assert decode(ties, mask, *bio_constraints(LABELS)) == [[0] * 4] * 2
    ties[:, 2, 2] = 1
    assert decode(ties, mask, *bio_constraints(LABELS)) == [[0, 1, 2, 0]] * 2


def test_a_batch_without_tokens_gives_empty_sequences():
    constraints = bio_constraints(LABELS)
    for shape in ((2, 0), (0, 3), (2, 3)):
        mask = torch.zeros(shape, dtype=torch.bool)
        assert decode(torch.zeros(*shape, 5), mask, *constraints) == [[]] * shape[0]
