import json
import pickle

import pytest

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.tasks.prediction import Prediction
from tests.html import shown, text_of

EVIL = "<script>alert('1 & 2')</script>"
WORDS = ["They", "like", "old", "trees"]
FRAME = {"predicate": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]}
PER, LOC = ({"type": name, "start": n, "end": n + 1} for name, n in (("PER", 0), ("LOC", 2)))


def mention(sentence, start, end):
    return {"sentence": sentence, "start": start, "end": end}


CLUSTERS = [[mention(0, 0, 0), mention(0, 2, 2)], [mention(0, 2, 3), mention(1, 0, 0)]]
ENDING_TOGETHER = [[mention(0, 0, 2)], [mention(0, 2, 2)], [mention(0, 1, 2)]]


@pytest.mark.parametrize(
    "prediction, lines",
    [
        ({"tokens": WORDS, "entities": [PER, LOC]}, ["They like PER old trees LOC"]),
        (
            {"tokens": WORDS, "frames": [FRAME, {"predicate": 3, "tags": ["O", "O", "O", "B-V"]}]},
            ["They ARG0 like V old trees ARG1", "They like old trees V"],
        ),
        # Of a corpus, each frame is a prediction.
        ({"tokens": WORDS, **FRAME}, ["They ARG0 like V old trees ARG1"]),
        (
            {"sentences": [["Anna", "lost", "her", "keys"], ["They", "are"]], "clusters": CLUSTERS},
            ["Anna 1 lost her 1 keys 2", "They 2 are"],
        ),
        # The outer span ends last.
        ({"sentences": [["a", "b", "c"]], "clusters": ENDING_TOGETHER}, ["a b c 2 3 1"]),
        ({"tokens": ["A", "dog"], "probabilities": {"good": 1.0}}, ["A dog"]),
    ],
)
def test_spans_are_marked(prediction, lines):
    tree = shown(Prediction(prediction))
    assert [text_of(line) for line in tree.findall("p")] == lines
    labels = {mark[-1].text: mark.get("style") for mark in tree.iter("mark")}
    assert len(set(labels.values())) == len(labels)


def test_an_answer_is_marked_in_its_passage():
    best = [
        {"answer": "in London", "start": 10, "end": 19, "probability": 0.75},
        {"answer": "London", "start": 13, "end": 19, "probability": 0.125},
    ]
    prediction = Prediction({**best[0], "n_best": best})
    assert text_of(shown(prediction)).startswith("in London in London")
    prediction.passage = "Ada lives in London. She works."
    tree = shown(prediction)
    assert [text_of(line) for line in tree.iter("p")] == ["Ada lives in London .", "She works ."]
    assert [each.text for each in tree.iter("mark")] == ["in London"]
    rows = [[text_of(cell) for cell in row] for row in tree.iter("tr")]
    assert rows == [["in London", "", "0.750"], ["London", "", "0.125"]]
    assert "passage" not in json.loads(json.dumps(prediction))
    assert pickle.loads(pickle.dumps(prediction)).passage == prediction.passage


def test_probabilities_are_bars():
    prediction = Prediction(
        premise_tokens=["A", "dog", "runs"],
        hypothesis_tokens=["It", "moves"],
        label="entailment",
        probabilities={"entailment": 0.9, "neutral": 0.1},
    )
    tree = shown(prediction)
    assert [text_of(each) for each in tree.iter("p")] == ["A dog runs", "It moves"]
    styles = [each.get("style", "") for each in tree.iter("div")]
    widths = [style.partition("width: ")[2].partition(";")[0] for style in styles]
    # Of each bar, and of the space for it.
    assert [width for width in widths if width] == ["12em", "90.0%", "12em", "10.0%"]


@pytest.mark.parametrize(
    "prediction",
    [
        {"tokens": [EVIL], "entities": [{"type": EVIL, "start": 0, "end": 0}]},
        {"tokens": [EVIL], "frames": [{"predicate": 0, "tags": [f"B-{EVIL}"]}]},
        {"sentences": [[EVIL]], "clusters": [[mention(0, 0, 0)]]},
        {"tokens": [EVIL], "probabilities": {EVIL: 0.5}},
        {"answer": EVIL, "start": 0, "end": 9, "n_best": [{"answer": EVIL, "probability": 1.0}]},
    ],
)
def test_text_and_labels_are_no_html(prediction):
    prediction = Prediction(prediction)
    prediction.passage = EVIL * 2
    tree = shown(prediction)
    assert not list(tree.iter("script"))
    assert EVIL in text_of(tree)


def test_it_is_json_and_unknown_fields_are_shown_as_such():
    prediction = Prediction(something=[1, 2])
    assert prediction == {"something": [1, 2]}
    assert json.dumps(prediction) == '{"something": [1, 2]}'
    assert prediction._repr_html_() is None
    # A frame without its tokens.
    assert Prediction(predicate=0, tags=["B-V"])._repr_html_() is None
