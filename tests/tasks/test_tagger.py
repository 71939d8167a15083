from typing import List

from allennlp.data import Vocabulary
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder

from elmo_plugin.tasks.model import Scores, TaggerModel

LABELS = ["O", "B-A", "I-A", "I-B", "B-B"]


def constraints(tags: List[str]) -> Scores:
    model = TaggerModel(Vocabulary.empty(), BasicTextFieldEmbedder({}))
    model.set_tags(tags, "BIO")
    return model.scores_of_sequences()


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
