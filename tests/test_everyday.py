"""`scripts/everyday.py` counts the everyday inputs that the shipped models answer right."""

import json
import re
import sys

import pytest

from scripts import everyday

FOLDER = everyday.INPUTS.parent
INPUTS = json.loads(everyday.INPUTS.read_text(encoding="utf-8"))


class Answering:
    """Instead of a predictor."""

    def __init__(self, prediction):
        self.prediction = prediction

    def predict_batch_json(self, lines):
        assert all("expected" not in line for line in lines)
        return [self.prediction for _ in lines]


def entities(*pairs):
    return {"entities": [{"text": text, "type": label} for text, label in pairs]}


def roles(tags, predicate=2):
    words = ["Ann", "Lee", "ate", "an", "egg", "there"]
    return {"tokens": words, "frames": [{"predicate": predicate, "tags": tags.split()}]}


def clusters(*texts):
    return {"clusters": [[{"text": text} for text in cluster] for cluster in texts]}


@pytest.mark.parametrize(
    "task, expected, right, wrong",
    [
        (
            "ner",
            [["Ann O'Hara", "PER"], ["Rome", "LOC"]],
            [entities(("Ann O 'Hara", "PER"), ("Rome", "LOC"))],
            [
                entities(("Ann O 'Hara", "PER")),
                entities(("Ann O 'Hara", "PER"), ("Rome", "ORG")),
                entities(("Ann", "PER"), ("Rome", "LOC")),
                entities(("Ann O 'Hara", "PER"), ("Rome", "LOC"), ("Rome", "LOC")),
            ],
        ),
        (
            "srl",
            {"ate": {"ARG0": "Ann Lee", "ARG1": "an egg"}},
            [
                roles("B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 O"),
                roles("B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 B-ARGM-LOC"),
                roles("B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 B-R-ARG1"),
            ],
            [
                roles("B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 I-ARG1"),
                roles("B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 B-C-ARG1"),
                roles("B-ARG0 I-ARG0 B-V B-ARG1 I-ARG1 B-ARG2"),
                roles("B-ARG0 B-ARG0 B-V B-ARG1 I-ARG1 O"),
                roles("B-ARG0 I-ARG0 B-V O O O"),
                roles("B-ARG0 I-ARG0 O B-ARG1 I-ARG1 O", predicate=5),
            ],
        ),
        (
            "coref",
            [["Ann", "she"], ["an egg", "it"]],
            [clusters(("Ann", "she"), ("an egg", "it"))],
            [
                clusters(("Ann", "she")),
                clusters(("Ann", "it"), ("an egg", "she")),
                clusters(("Ann", "she", "it"), ("an egg", "it")),
                clusters(("Ann", "she"), ("an egg", "it"), ("a", "b")),
            ],
        ),
        ("snli", "neutral", [{"label": "neutral"}], [{"label": "entailment"}]),
        (
            "squad",
            ["an egg", "one egg"],
            [{"answer": "The egg."}, {"answer": "one egg"}],
            [{"answer": "egg and ham"}],
        ),
        ("tagger", "NNP VBD", [{"tags": ["NNP", "VBD"]}], [{"tags": ["NNP", "VBN"]}]),
    ],
)
def test_only_fully_right_answers_count(task, expected, right, wrong):
    line = {"sentence": "Ann Lee ate an egg there", "expected": expected}
    for predictions, is_right in ((right, True), (wrong, False)):
        for prediction in predictions:
            ((found, asked, *_),) = everyday.answers(task, Answering(prediction), [line])
            assert found is is_right, prediction
            assert asked == {"sentence": "Ann Lee ate an egg there"}


def test_expected_answers_can_be_given():
    assert {len(lines) for lines in INPUTS.values()} == {20}
    for line in INPUTS["ner"]:
        assert all(text in line["sentence"] for text, _ in line["expected"])
        assert {label for _, label in line["expected"]} <= {"PER", "LOC", "ORG"}
    for line in INPUTS["srl"]:
        for verb, roles in line["expected"].items():
            assert line["sentence"].count(verb) == 1
            assert all(text in line["sentence"] for text in roles.values())
    for line in INPUTS["coref"]:
        # The order of a prediction. Clusters are compared by texts, so none is in two of them.
        places = [line["text"].index(cluster[0]) for cluster in line["expected"]]
        assert places == sorted(places)
        texts = [text for cluster in line["expected"] for text in cluster]
        assert len(set(texts)) == len(texts) and all(text in line["text"] for text in texts)
    for line in INPUTS["squad"]:
        assert line["expected"][0] in line["passage"]


def test_cards_and_table_have_the_same_counts():
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    for task in INPUTS:
        card = (FOLDER / task / "README.md").read_text(encoding="utf-8")
        (count,) = re.findall(rf"(\d+) of 20 \(`python scripts/everyday.py {task}`\)", card)
        assert re.search(rf"\({task}/README.md\) .*\| {count} of 20 \|", table)


def test_the_script_prints_what_is_wrong_and_the_count(monkeypatch, capsys):
    first, *others = INPUTS["tagger"]
    model = Answering({"tags": first["expected"].split()})
    monkeypatch.setattr(everyday, "load_predictor", {"model.tar.gz": model}.get)
    monkeypatch.setattr(everyday, "find_archive", {"mine": "model.tar.gz"}.get)
    monkeypatch.setattr(sys, "argv", ["everyday.py", "tagger", "--archive", "mine"])
    everyday.main()
    printed = capsys.readouterr().out
    assert "tagger: 1 of 20 right" in printed
    assert first["sentence"] not in printed
    assert all(f"sentence: {line['sentence']}\n" in printed for line in others)


@pytest.mark.parametrize("wrong", [["--archive", "model.tar.gz"], ["parsing"]])
def test_other_arguments_are_refused(wrong, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["everyday.py", *wrong])
    with pytest.raises(SystemExit):
        everyday.main()
    assert "error: " in capsys.readouterr().err
