import copy
import gzip
import json
from pathlib import Path

import pytest

from elmo_plugin.corpora.squad import Answer, Paragraph, Question, read_paragraphs

CORPUS = Path(__file__).parents[2] / "fixtures/corpora/squad"
CONTEXT = "Zoë runs a café. Her café opens at six."
FIRST = {
    "id": "q1",
    "question": "When does it open?",
    "answers": [{"text": "six", "answer_start": 35}, {"text": "at six", "answer_start": 32}],
}
SECOND = {
    "id": "q2",
    "question": "What does Zoë run?",
    "answers": [{"text": "a café", "answer_start": 9}],
}
CORRECT = {
    "version": "1.1",
    "data": [
        {"title": "Tea", "paragraphs": [{"context": "Tea is hot.", "qas": []}]},
        {"title": "Cafés", "paragraphs": [{"context": CONTEXT, "qas": [FIRST, SECOND]}]},
    ],
}
PLACE = 'x.json: article 2 "Cafés", paragraph 1'


def read(tmp_path, whole):
    path = tmp_path / "x.json"
    path.write_text(whole if isinstance(whole, str) else json.dumps(whole), encoding="utf-8")
    return list(read_paragraphs(path))


def changed(**changes):
    """The correct file with another second question, `None` standing for no such field."""
    whole = copy.deepcopy(CORRECT)
    question = whole["data"][1]["paragraphs"][0]["qas"][1]
    question.update(changes)
    for key in [key for key, value in question.items() if value is None]:
        del question[key]
    return whole


def test_paragraphs_come_with_their_questions_and_all_answers(tmp_path):
    assert read(tmp_path, CORRECT) == [
        Paragraph("Tea is hot.", ()),
        Paragraph(
            CONTEXT,
            (
                Question("q1", "When does it open?", (Answer("six", 35), Answer("at six", 32))),
                Question("q2", "What does Zoë run?", (Answer("a café", 9),)),
            ),
        ),
    ]


@pytest.mark.parametrize("answers", [{}, {"answers": []}])
def test_questions_without_answers_are_read(tmp_path, answers):
    question = {"id": "q", "question": "Who?", **answers}
    whole = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [question]}]}]}
    assert read(tmp_path, whole) == [Paragraph(CONTEXT, (Question("q", "Who?", ()),))]


def test_layout_of_the_json_and_compression_do_not_matter(tmp_path):
    expected = read(tmp_path, CORRECT)
    assert read(tmp_path, "\ufeff" + json.dumps(CORRECT, ensure_ascii=False, indent=2)) == expected
    (tmp_path / "y.json.gz").write_bytes(gzip.compress(json.dumps(CORRECT).encode()))
    assert list(read_paragraphs(tmp_path / "y.json")) == expected


@pytest.mark.parametrize(
    "answer, message",
    [
        (
            {"text": "a café", "answer_start": 8},
            "expected the answer 'a café' at character 8 of the context, found ' a caf'. "
            'Set "answer_start" to 9, its first occurrence, if that is the right',
        ),
        (
            {"text": "café", "answer_start": 39},
            ".*at character 39 of the context, which has 39 characters. Set .* to 11",
        ),
        ({"text": "six.", "answer_start": -4}, ".*at character -4 of the context, which has 39"),
        (
            {"text": "A café", "answer_start": 9},
            ".*found 'a café'. The answer does not occur in the context: copy it from there",
        ),
        ({"text": " ", "answer_start": 3}, "expected \"text\" with some text, found ' '. Fill"),
        ({"text": "a café"}, r"expected \"answer_start\" with an integer, .* \['text'\]"),
        ({"text": "a café", "answer_start": "9"}, '.*an integer, found "9". A file looks like'),
        ({"text": "oë", "answer_start": True}, ".*an integer, found true"),
        ({"text": 6, "answer_start": 35}, 'expected "text" with a string, found 6'),
        ("a café", 'expected "text" with a string, found "a caf'),
    ],
)
def test_a_wrong_answer_is_named_by_its_question(tmp_path, answer, message):
    with pytest.raises(ValueError, match=f"{PLACE}, question q2: {message}"):
        read(tmp_path, changed(answers=[SECOND["answers"][0], answer]))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"question": ""}, "question q2: expected \"question\" with some text, found ''"),
        ({"question": None}, r"question q2: .* found the fields \['answers', 'id'\]"),
        ({"question": "Who\ud83d?"}, r"question q2: .* the lone surrogate \\ud83d"),
        ({"answers": "a café"}, 'question q2: expected "answers" with a list'),
        ({"id": None}, r"question 2: expected \"id\" with a string, found the fields \['answers"),
        ({"id": 2}, 'question 2: expected "id" with a string, found 2'),
        ({"id": "q1"}, 'question q1: expected a unique "id"'),
        (
            {"answers": None},
            "question q2: expected an answer, as for the questions before, found 0. Answer all",
        ),
        (
            {"answers": [], "is_impossible": True},
            "question q2: expected a question that the paragraph answers, found "
            '"is_impossible", a field of SQuAD 2.0. Use SQuAD 1.1, or leave',
        ),
    ],
)
def test_a_wrong_question_is_named_by_its_place(tmp_path, changes, message):
    with pytest.raises(ValueError, match=f"{PLACE}, {message}"):
        read(tmp_path, changed(**changes))


def test_answers_after_unanswered_questions_are_refused(tmp_path):
    whole = changed()
    del whole["data"][1]["paragraphs"][0]["qas"][0]["answers"]
    with pytest.raises(ValueError, match="question q2: expected no answer, as .* found 1"):
        read(tmp_path, whole)


@pytest.mark.parametrize(
    "whole, message",
    [
        ("Tea is hot.\n", "x.json:1: expected JSON like .*found 'Tea is hot.'.*another format"),
        (json.dumps(CORRECT, indent=1)[:-9], "x.json:[0-9]+: expected JSON .*cut off"),
        ("", "x.json:1: expected JSON"),
        ([CORRECT], 'x.json: expected "data" with a list, found '),
        ({"version": "1.1"}, r"x.json: expected \"data\" .* the fields \['version'\]. A file"),
        ({"data": {}}, 'x.json: expected "data" with a list, found {}'),
        ({"data": []}, "x.json: expected at least one question, found none"),
        ({"data": ["Tea"]}, 'x.json: article 1: expected "paragraphs" with a list, found "Tea"'),
        ({"data": [{"title": "Tea"}]}, 'x.json: article 1 "Tea": expected "paragraphs"'),
        (
            {"data": [{"title": "Tea", "paragraphs": [{"context": "\n", "qas": []}]}]},
            'x.json: article 1 "Tea", paragraph 1: expected "context" with some text',
        ),
        (
            {"data": [{"title": "Tea", "paragraphs": [{"context": "Tea."}]}]},
            'x.json: article 1 "Tea", paragraph 1: expected "qas" with a list',
        ),
    ],
)
def test_a_file_of_another_layout_is_named_by_the_place_where_it_differs(tmp_path, whole, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, whole)


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(json.dumps(CORRECT, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(ValueError, match="x.json:1: expected UTF-8 text"):
        list(read_paragraphs(path))


@pytest.mark.parametrize(
    "split, num_paragraphs, num_questions, num_answers", [("train", 12, 71, 71), ("dev", 4, 20, 46)]
)
def test_the_fixture_has_short_paragraphs_with_questions(
    split, num_paragraphs, num_questions, num_answers
):
    paragraphs = list(read_paragraphs(CORPUS / f"{split}-v1.1.json"))
    questions = [question for paragraph in paragraphs for question in paragraph.questions]
    assert (len(paragraphs), len(questions)) == (num_paragraphs, num_questions)
    assert sum(len(question.answers) for question in questions) == num_answers
    assert all(question.text.endswith("?") for question in questions)
