import json
from pathlib import Path

import pytest

from elmo_plugin.corpora.squad import Answer, Paragraph, Question, read_paragraphs

CORPUS = Path(__file__).parents[2] / "fixtures/corpora/squad"
CONTEXT = "Zoë runs a café. Her café opens at six."
QUESTION = {
    "id": "q1",
    "question": "When does it open?",
    "answers": [{"text": "six", "answer_start": 35}, {"text": "at six", "answer_start": 32}],
}


@pytest.mark.parametrize("layout", [{}, {"ensure_ascii": False, "indent": 2}])
def test_paragraphs_come_with_their_questions_and_all_answers(write, layout):
    tea = {"context": "Tea is hot.", "qas": []}
    cafe = {"context": CONTEXT, "qas": [QUESTION]}
    articles = [{"title": "Tea", "paragraphs": [tea]}, {"paragraphs": [cafe]}]
    path = write(json.dumps({"version": "1.1", "data": articles}, **layout))
    question = Question("q1", "When does it open?", (Answer("six", 35), Answer("at six", 32)))
    assert list(read_paragraphs(path)) == [
        Paragraph("Tea is hot.", ()),
        Paragraph(CONTEXT, (question,)),
    ]


@pytest.mark.parametrize("answers", [{}, {"answers": []}])
def test_questions_without_answers_are_read(write, answers):
    paragraph = {"context": CONTEXT, "qas": [{"id": "q", "question": "Who?", **answers}]}
    path = write({"data": [{"paragraphs": [paragraph]}]})
    assert list(read_paragraphs(path)) == [Paragraph(CONTEXT, (Question("q", "Who?", ()),))]


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
