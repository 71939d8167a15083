import json

import pytest

from elmo_plugin.corpora.squad import Answer, Paragraph, Question, read_paragraphs

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
