import json
import pickle

import pytest

from elmo_plugin.tasks.prediction import Prediction
from tests.html import shown, text_of

EVIL = "<script>alert('1 & 2')</script>"


def marks(tree):
    """Text and label of each marked part."""
    return [
        (text_of(each).removesuffix(each[-1].text).strip(), each[-1].text)
        for each in tree.iter("mark")
    ]


def test_entities_are_marked():
    prediction = Prediction(
        tokens=["Ada", "Lovelace", "in", "London"],
        entities=[
            {"type": "PER", "start": 0, "end": 1, "text": "Ada Lovelace"},
            {"type": "LOC", "start": 3, "end": 3, "text": "London"},
        ],
    )
    tree = shown(prediction)
    assert marks(tree) == [("Ada Lovelace", "PER"), ("London", "LOC")]
    assert text_of(tree) == "Ada Lovelace PER in London LOC"
    colours = {each.get("style") for each in tree.iter("mark")}
    assert len(colours) == 2


def test_each_frame_has_a_line():
    frames = [
        {"predicate": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]},
        {"predicate": 3, "tags": ["O", "O", "O", "B-V"]},
    ]
    prediction = Prediction(tokens=["They", "like", "old", "trees"], frames=frames)
    lines = list(shown(prediction))
    assert marks(lines[0]) == [("They", "ARG0"), ("like", "V"), ("old trees", "ARG1")]
    assert marks(lines[1]) == [("trees", "V")]
    # Of a corpus, each frame is a prediction.
    assert marks(shown(Prediction(tokens=prediction["tokens"], **frames[0]))) == marks(lines[0])


def test_mentions_are_nested():
    prediction = Prediction(
        sentences=[["Anna", "lost", "her", "keys"], ["They", "are", "hers"]],
        clusters=[
            [
                {"sentence": 0, "start": 0, "end": 0},
                {"sentence": 0, "start": 2, "end": 2},
            ],
            [
                {"sentence": 0, "start": 2, "end": 3},
                {"sentence": 1, "start": 0, "end": 0},
            ],
        ],
    )
    tree = shown(prediction)
    assert text_of(tree[0]) == "Anna 0 lost her 0 keys 1"
    outer = tree[0].findall("mark")[1]
    assert text_of(outer.find("mark")) == "her 0"
    assert text_of(tree[1]) == "They 1 are hers"


def test_of_spans_that_end_together_the_outer_one_ends_last():
    mention = {"sentence": 0, "end": 2}
    clusters = [[{**mention, "start": 0}], [{**mention, "start": 2}], [{**mention, "start": 1}]]
    tree = shown(Prediction(sentences=[["a", "b", "c"]], clusters=clusters))
    assert text_of(tree) == "a b c 1 2 0"


def test_an_answer_is_marked_in_its_passage():
    best = [
        {"answer": "in London", "start": 10, "end": 19, "probability": 0.75},
        {"answer": "London", "start": 13, "end": 19, "probability": 0.125},
    ]
    prediction = Prediction({**best[0], "n_best": best})
    assert text_of(shown(prediction)).startswith("in London in London")
    prediction.passage = "Ada lives in London & Paris"
    tree = shown(prediction)
    assert text_of(tree[0]) == prediction.passage
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
        {"sentences": [[EVIL]], "clusters": [[{"sentence": 0, "start": 0, "end": 0}]]},
        {"tokens": [EVIL], "probabilities": {EVIL: 0.5}},
        {
            "answer": EVIL,
            "start": 0,
            "end": len(EVIL),
            "n_best": [{"answer": EVIL, "probability": 1.0}],
        },
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
