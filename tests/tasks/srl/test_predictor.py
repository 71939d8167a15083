import itertools
import json
import re

import pytest
import spacy
from allennlp.common.checks import ConfigurationError
from spacy.language import Language

from elmo_plugin.corpora.conll2012 import format_propositions, read_sentences
from tests.guide import FIXTURES

TEST = FIXTURES / "corpora/srl/test.gold_conll"


def test_every_predicate_of_every_line_is_labelled(make):
    lines = [
        {"sentence": "The play began and they left.", "predicates": [2, 5]},
        {"tokens": ["They", "play"], "predicates": "all"},
        {"tokens": ["Yes"], "predicates": []},
        {"sentence": "", "predicates": "all"},
    ]
    first, second, third, fourth = make().predict_batch_json(lines)
    assert first["tokens"] == ["The", "play", "began", "and", "they", "left", "."]
    assert [frame["predicate"] for frame in first["frames"]] == [2, 5]
    assert all(len(frame["tags"]) == 7 for frame in first["frames"])
    assert [frame["predicate"] for frame in second["frames"]] == [0, 1]
    assert third == {"tokens": ["Yes"], "frames": []}
    assert fourth == {"tokens": [], "frames": []}


def test_descriptions_can_be_read():
    from elmo_plugin.tasks.srl.predictor import _description

    words = ["They", "play", "old", "games", "here", "."]
    tags = ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "B-ARGM-LOC", "O"]
    expected = "[ARG0: They] [V: play] [ARG1: old games] [ARGM-LOC: here] ."
    assert _description(words, tags) == expected


def test_a_corpus_is_written_as_the_scorer_reads_it(make, archive):
    predictor = make(output_format="conll")
    instances = list(archive.validation_dataset_reader.read(TEST))
    outputs = [
        output
        for first in range(0, len(instances), 5)
        for output in predictor.predict_batch_instance(instances[first : first + 5])
    ]
    written = "".join(predictor.dump_line(output) for output in outputs)
    remaining, expected = iter(outputs), ""
    for sentence in read_sentences(TEST):
        if sentence.frames:
            tags = [next(remaining)["tags"] for _ in sentence.frames]
            predicates = [(frame.predicate_index, frame.lemma) for frame in sentence.frames]
            expected += format_propositions(len(sentence.words), predicates, tags)
    assert written == expected


def test_sentences_are_written_as_the_scorer_reads_them(make):
    predictor = make(output_format="conll")
    output = predictor.predict_json({"tokens": ["They", "play"], "predicates": [1]})
    rows = predictor.dump_line(output).splitlines()
    assert [row.split()[0] for row in rows if row] == ["-", "play"]
    assert "is_last_of_sentence" not in output["frames"][0]
    for lemma, expected in (("pre-", "pre-"), ("--", "--"), ("-", "verb"), ("a b", "ab")):
        output["frames"][0]["lemma"] = lemma
        assert predictor.dump_line(output).splitlines()[1].split()[0] == expected
    assert predictor.dump_line({"tokens": ["Yes"], "frames": []}) == ""


def test_a_spacy_model_that_is_not_installed_is_named(make):
    with pytest.raises(ConfigurationError, match="spaCy cannot load 'no_such_model'"):
        make(spacy_model="no_such_model")


@pytest.mark.parametrize(
    "rules, found",
    [
        ([({"TAG": "VBP", "LEMMA": "plays"}, "play"), ({"TAG": "NN"}, "chess")], [(1, "plays")]),
        # Without tags, parts of speech.
        ([({"POS": "AUX"}, "they"), ({"POS": "VERB"}, "play")], [(0, "They"), (1, "play")]),
    ],
)
def test_verbs_are_those_that_the_spacy_model_finds(make, tmp_path, rules, found):
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("attribute_ruler")
    for attributes, word in rules:
        ruler.add([[{"LOWER": word}]], attributes)
    pipeline.to_disk(tmp_path / "tagger")
    frames = make(spacy_model=str(tmp_path / "tagger")).predict("They play chess.")["frames"]
    assert [(frame["predicate"], frame["lemma"]) for frame in frames] == found


def test_without_a_spacy_model_the_shipped_tagger_finds_verbs(make):
    lines = [
        {"sentence": "They wanted to play chess."},
        {"tokens": ["Chess", "!"]},
        {"tokens": ["They", "play"], "predicates": [0]},
        {"sentence": " "},
    ]
    predictor = make()
    outputs = predictor.predict_batch_json(lines)
    found = [[frame["predicate"] for frame in output["frames"]] for output in outputs]
    assert found == [[1, 3], [], [0], []]
    # Before the predicates are named, a sentence counts once for limits of its length.
    assert len(predictor.texts(lines[0])) == 1
    assert predictor.completed(lines[0]) == {**lines[0], "predicates": [1, 3]}


def test_without_a_tagger_the_error_says_what_finds_verbs(make, monkeypatch):
    monkeypatch.setattr("elmo_plugin.tasks.srl.predictor.shipped_archives", dict)
    with pytest.raises(ValueError, match='expected "predicates".*en_core_web_sm'):
        make().predict("They play.")


def test_a_spacy_model_without_a_tagger_is_named(make, tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    predictor = make(spacy_model=str(tmp_path / "blank"))
    with pytest.raises(ConfigurationError, match="expected .*blank' to tag words.*'They play"):
        predictor.predict_json({"sentence": "They play chess."})
    assert predictor.predict_json({"sentence": " "}) == {"tokens": [], "frames": []}
    assert len(predictor.predict("They play", [1])["frames"]) == 1


def test_a_predicate_outside_the_tokens_that_spacy_has_merged_is_refused(make):
    @Language.component("merge-first-two")
    def merge(document):
        with document.retokenize() as retokenizer:
            retokenizer.merge(document[:2])
        return document

    predictor = make()
    predictor._spacy.add_pipe("merge-first-two")
    assert predictor.predict("They play games", [1])["tokens"] == ["They play", "games"]
    with pytest.raises(ValueError, match="from 0 in 'They play games', found 2"):
        predictor.predict("They play games", [2])


@pytest.mark.parametrize(
    "predicates, positions", [(["saw", "saw", 0], [0, 1, 3]), (["saw", "I"], [0, 1]), ([3, 3], [3])]
)
def test_predicates_can_be_given_by_their_words(make, predicates, positions):
    words = ["I", "saw", "a", "saw"]
    output = make().predict_json({"tokens": words, "predicates": predicates})
    assert [frame["predicate"] for frame in output["frames"]] == positions


def test_positions_count_the_tokens_that_were_given(make):
    output = make().predict_json({"tokens": ["They", " ", "play", "chess"], "predicates": [2]})
    assert output["tokens"] == ["They", " ", "play", "chess"]
    assert output["frames"][0]["lemma"] == "play"


def test_a_corpus_in_json_has_gold_tags_and_nothing_internal(make, archive):
    predictor = make()
    (instance,) = itertools.islice(predictor._dataset_reader.read(TEST), 1)
    output = predictor.predict_instance(instance)
    assert json.loads(predictor.dump_line(output)) == output
    assert output["gold_tags"] == instance["metadata"].metadata["gold_tags"]
    assert "is_last_of_sentence" not in output


def test_a_long_text_is_only_tokenised(make):
    text = "They play chess. " * 60_000
    assert len(text) > 1_000_000
    words = make().load_line(json.dumps({"sentence": text, "predicates": [1]}))
    assert words["predicates"] == [1]


@pytest.mark.parametrize("predicate, found", [("sang", '"sang"'), (3, "3"), ("play", '"play"')])
def test_a_predicate_that_the_sentence_lacks_is_refused(make, predicate, found):
    predictor = make()
    # "play" is given twice, and occurs once.
    line = {"sentence": "They play.", "predicates": ["play", predicate]}
    message = f"words or positions from 0 in 'They play .', found {found}"
    with pytest.raises(ValueError, match=re.escape(message)):
        predictor.predict_json(line)
