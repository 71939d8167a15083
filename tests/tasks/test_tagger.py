from itertools import product
from typing import List

import torch
from allennlp.data import Vocabulary
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder

from elmo_plugin.modules.viterbi import decode
from elmo_plugin.tasks.model import Scores, TaggerModel

LABELS = ["O", "B-A", "I-A", "I-B", "B-B"]


def constraints(tags: List[str]) -> Scores:
    model = TaggerModel(Vocabulary.empty(), BasicTextFieldEmbedder({}))
    model.set_tags(tags, "BIO")
    return model.scores_of_sequences()


def is_legal(tags: List[str]) -> bool:
    return all(
        not tag.startswith("I-") or previous[2:] == tag[2:]
        for previous, tag in zip(["O"] + tags, tags)
    )


def best_by_enumeration(log_probabilities: torch.Tensor) -> List[int]:
    """Scores every legal sequence."""
    legal = [
        sequence
        for sequence in product(range(len(LABELS)), repeat=len(log_probabilities))
        if is_legal([LABELS[label] for label in sequence])
    ]
    steps = torch.arange(len(log_probabilities))
    return list(max(legal, key=lambda labels: log_probabilities[steps, list(labels)].sum().item()))


def test_an_inside_without_its_beginning_is_illegal():
    start_scores, transition_scores, end_scores = constraints(LABELS)
    never = float("-inf")
    assert start_scores.tolist() == [0, 0, never, never, 0]
    assert end_scores.tolist() == [0, 0, 0, 0, 0]
    assert transition_scores.tolist() == [
        [0, 0, never, never, 0],
        [0, 0, 0, never, 0],
        [0, 0, 0, never, 0],
        [0, 0, never, 0, 0],
        [0, 0, never, 0, 0],
    ]


def test_padding_and_the_unknown_label_are_illegal():
    start_scores, transition_scores, _ = constraints(["@@PADDING@@", "@@UNKNOWN@@", "O"])
    assert start_scores.isneginf().tolist() == [True, True, False]
    assert transition_scores.isneginf()[:, :2].all()
    assert constraints(["@@PADDING@@"])[0].isneginf().all()


def test_decodes_the_best_of_all_legal_sequences():
    torch.manual_seed(0)
    for lengths in ([4, 0, 2, 5], [1], [3, 3, 1]):
        mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
        scores = 3 * torch.randn(*mask.shape, len(LABELS))
        log_probabilities = scores.log_softmax(dim=2)
        expected = [
            best_by_enumeration(sentence[:length]) if length else []
            for sentence, length in zip(log_probabilities, lengths)
        ]
        assert decode(log_probabilities, mask, *constraints(LABELS)) == expected
