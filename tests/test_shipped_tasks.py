"""The trained models that come with the project: small, portable, and trained."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import elmo_plugin
from elmo_plugin.util.errors import ConfigurationError

FOLDER = Path(__file__).parent.parent / "pretrained" / "tasks"
ARCHIVES = sorted(FOLDER.glob("*/model.tar.gz"))


def test_each_is_small_and_has_a_card():
    assert ARCHIVES
    sizes = [path.stat().st_size for path in ARCHIVES]
    assert max(sizes) <= 12e6 and sum(sizes) <= 60e6
    overview = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in ARCHIVES:
        card = (path.parent / "README.md").read_text(encoding="utf-8")
        for part in ("licence", "score", "training data", "Known failures", "elmo pack"):
            assert part in card, (path, part)
        assert f"({path.parent.name}/README.md)" in overview
        assert f"{path.stat().st_size / 1e6:.1f} MB" in overview


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.parent.name)
def test_none_names_a_folder_of_the_machine_that_trained_it(archive):
    with tarfile.open(archive) as opened:
        config = opened.extractfile("config.json").read().decode()
    assert '": "/' not in config and "options_file" not in config


def test_the_examples_of_the_server_are_answered_rightly_and_without_notices():
    """In a process of its own, because AllenNLP gives some notices once in a process."""
    script = """if True:
        import json, elmo_plugin
        tasks = map(elmo_plugin.load_task, ("ner", "srl", "coref", "squad", "snli"))
        answers = [predictor.predict_json(predictor.example) for predictor in tasks]
        tagger, srl = map(elmo_plugin.load_task, ("tagger", "srl"))
        answers.append(tagger.predict_json({"sentence": "She has to water the plants."}))
        answers.append(srl.predict("The girl gave her brother a book and left."))
        print(json.dumps(answers))"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, cwd=FOLDER.parents[1],
    )  # fmt: skip
    assert ended.stderr == ""
    ner, srl, coref, squad, snli, tagger, srl_of_plain_text = json.loads(ended.stdout)
    assert [(each["text"], each["type"]) for each in ner["entities"]] == [
        ("Ada Lovelace", "PER"),
        ("Charles Babbage", "PER"),
        ("London", "LOC"),
    ]
    assert [frame["description"] for frame in srl["frames"]] == [
        "[ARG0: The girl] [V: gave] [ARG2: her brother] [ARG1: a book] and left .",
        "[ARG0: The girl] gave her brother a book and [V: left] .",
    ]
    assert [[mention["text"] for mention in cluster] for cluster in coref["clusters"]] == [
        ["The company", "it", "its"],
        ["The workers", "they", "their"],
    ]
    assert squad["answer"] == "London" and snli["label"] == "entailment"
    assert tagger["tags"] == ["PRP", "VBZ", "TO", "VB", "DT", "NNS", "."]
    # The tagger has found the predicates of the example.
    assert srl_of_plain_text == srl


# The right answers to the examples in `page.json`; those to the hard ones are in their notes.
RIGHT = {
    "ner": [
        "Angela Merkel PER, Emmanuel Macron PER, Berlin LOC",
        "Marie Curie PER, Warsaw LOC, Paris LOC",
        "World Health Organization ORG, Geneva LOC",
        "Serena Williams PER, Venus PER, Compton LOC",
        "Rose PER, Grace PER",
        "Jordan PER, Jordan LOC, Petra LOC, Paris PER",
        "ANNA PER, MARK PER, TORONTO LOC",
    ],
    "srl": [
        "[ARG0: The old man] [V: wants] [ARG1: to sell his boat] . / "
        "[ARG0: The old man] wants to [V: sell] [ARG1: his boat] .",
        "[ARGM-TMP: On Monday] [ARG0: the police] [V: arrested] [ARG1: two men] "
        "[ARGM-LOC: near the station] .",
        "[ARG0: My sister] , [R-ARG0: who] [V: lives] [ARGM-LOC: in Rome] , teaches music . / "
        "[ARG0: My sister , who lives in Rome] , [V: teaches] [ARG1: music] .",
        "[ARGM-MOD: Can] [ARG0: you] [V: lend] [ARG2: me] [ARG1: your umbrella] ?",
        "[ARG0: They] [ARGM-MOD: will] [ARGM-NEG: not] [V: sell] [ARG1: the house] .",
        "[ARG0: The company] [V: sold] [ARG1: the building] [ARG2: to a bank] "
        "[ARG3: for two million dollars] .",
    ],
    "coref": [
        "The students, They, their / the minister, her",
        "Beethoven, he, his, he / his last symphonies, them",
        "The museum, its, it",
        "The actor, he, his, him",
        "the students, their, they",
        "John, he / Mary, her",
        "the cat, it",
    ],
    "snli": ["entailment", "contradiction", "neutral", "entailment", "neutral"]
    + ["contradiction"] * 2,
    "squad": ["how far away they are", "Microsoft", "5,895 metres", "1972", "Max"]
    + ["Shaw", "the projector in room 118 is broken"],
}
SHOWN = {
    "ner": lambda said: ", ".join(f"{each['text']} {each['type']}" for each in said["entities"]),
    "srl": lambda said: " / ".join(frame["description"] for frame in said["frames"]),
    "coref": lambda said: " / ".join(
        ", ".join(mention["text"] for mention in cluster) for cluster in said["clusters"]
    ),
    "snli": lambda said: said["label"],
    "squad": lambda said: said["answer"],
}


@pytest.mark.parametrize("task", RIGHT)
def test_the_examples_of_the_page_are_answered_rightly_or_marked_as_hard(task):
    predictor = elmo_plugin.load_task(task)
    examples = predictor.page["examples"]
    lines = [{name: each[name] for name in each if name != "hard"} for each in examples]
    answers = map(SHOWN[task], predictor.predict_batch_json(lines))
    is_right = [answer == right for answer, right in zip(answers, RIGHT[task], strict=True)]
    assert is_right == ["hard" not in example for example in examples]


def test_another_name_is_refused_with_those_that_exist():
    with pytest.raises(ConfigurationError, match=r"\(coref, ner, .*, found 'parsing'"):
        elmo_plugin.load_task("parsing")
