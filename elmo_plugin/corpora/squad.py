"""SQuAD's paragraphs with questions on them (Rajpurkar et al. 2016), one JSON object a file."""

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple, Union

from elmo_plugin.corpora.files import numbered_lines
from elmo_plugin.corpora.json_lines import check_surrogates

__all__ = ["Answer", "Paragraph", "Question", "read_paragraphs"]

_LAYOUT = (
    '{"data": [{"title": "…", "paragraphs": [{"context": "…", "qas": [{"id": "…", '
    '"question": "…", "answers": [{"text": "…", "answer_start": 0}]}]}]}]}'
)
_KINDS = {str: "a text", list: "a list", int: "a whole number"}


@dataclass(frozen=True)
class Answer:
    """
    # Parameters

    text : `str`
        What was marked in the paragraph.
    start : `int`
        How many characters of the paragraph come before it.
    """

    text: str
    start: int


@dataclass(frozen=True)
class Question:
    """
    # Parameters

    question_id : `str`
    text : `str`
    answers : `Tuple[Answer, ...]`
        One for each person who was asked; none where the file is without answers.
    """

    question_id: str
    text: str
    answers: Tuple[Answer, ...]


@dataclass(frozen=True)
class Paragraph:
    """
    # Parameters

    context : `str`
        Its text.
    questions : `Tuple[Question, ...]`
    """

    context: str
    questions: Tuple[Question, ...]


def read_paragraphs(path: Union[str, os.PathLike]) -> Iterator[Paragraph]:
    """
    Yields the paragraphs of a file in SQuAD 1.1's layout. In a file whose first question is
    without answers no question has any.

    # Parameters

    path : `Union[str, os.PathLike]`
        A plain or gzip file, local or a URL.

    # Returns

    `Iterator[Paragraph]`

    # Raises

    `ValueError`
        If the file is not JSON of this layout or holds no question; if a context, question or
        answer is empty, the id of a question is not new, or an answer does not stand in the
        context where it is said to; if only some questions have answers, or one is said to be
        impossible, as in SQuAD 2.0. The message names article, paragraph and question.
    """
    is_answered: Dict[str, bool] = {}
    for fields, place in _paragraphs(_load(path), str(path)):
        context = _text(fields, "context", place)
        questions = []
        for number, question_fields in enumerate(_field(fields, "qas", list, place), start=1):
            question = _question(question_fields, context, f"{place}, question {number}")
            _compare(question, is_answered, f"{place}, question {question.question_id}")
            is_answered[question.question_id] = bool(question.answers)
            questions.append(question)
        yield Paragraph(context, tuple(questions))
    if not is_answered:
        raise ValueError(
            f"{path}: expected at least one question, found none. A file looks like {_LAYOUT}."
        )


def _load(path: Union[str, os.PathLike]) -> Any:
    text = "\n".join(line for _, line in numbered_lines(path, newline="\n"))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line, position = getattr(error, "lineno", 1), getattr(error, "pos", 0)
        found = text[max(0, position - 20) : position + 20]
        raise ValueError(
            f"{path}:{line}: expected JSON like {_LAYOUT}, found {found!r} ({error}). "
            "Was the file cut off, or is it of another kind?"
        ) from error


def _paragraphs(whole: Any, path: str) -> Iterator[Tuple[Dict[str, Any], str]]:
    """Each with its place."""
    for number, article in enumerate(_field(whole, "data", list, path), start=1):
        place = f"{path}: article {number}"
        if isinstance(article, dict) and isinstance(article.get("title"), str):
            check_surrogates(article["title"], place)
            place += f' "{article["title"]}"'
        paragraphs: List[Any] = _field(article, "paragraphs", list, place)
        for paragraph_number, paragraph in enumerate(paragraphs, start=1):
            yield paragraph, f"{place}, paragraph {paragraph_number}"


def _question(fields: Any, context: str, place: str) -> Question:
    question_id = _text(fields, "id", place)
    place = f"{place.rsplit(' ', 1)[0]} {question_id}"
    text = _text(fields, "question", place)
    if fields.get("is_impossible"):
        raise ValueError(
            f'{place}: expected a question that the paragraph answers, found "is_impossible", '
            "which is SQuAD 2.0's. Use SQuAD 1.1, or leave such questions out."
        )
    answers = _field(fields, "answers", list, place) if "answers" in fields else []
    return Question(question_id, text, tuple(_answer(answer, context, place) for answer in answers))


def _compare(question: Question, is_answered: Dict[str, bool], place: str) -> None:
    """Refuses a question that does not go with those before."""
    if question.question_id in is_answered:
        raise ValueError(
            f'{place}: expected an "id" that no question before has, found it a second time. '
            "Predictions are told apart by it: give each question its own."
        )
    is_expected = next(iter(is_answered.values()), bool(question.answers))
    if bool(question.answers) != is_expected:
        raise ValueError(
            f"{place}: expected {'an answer' if is_expected else 'no answer'}, as for the "
            f"questions before, found {len(question.answers)}. Answer all questions of a file or "
            "none."
        )


def _answer(fields: Any, context: str, place: str) -> Answer:
    text, start = _text(fields, "text", place), _field(fields, "answer_start", int, place)
    found = context[start : start + len(text)] if start >= 0 else ""
    if found == text:
        return Answer(text, start)
    where = f"found {found!r}" if found else f"which has {len(context)} characters"
    first = context.find(text)
    cure = (
        f'Set "answer_start" to {first}, where it first stands, if that is the place meant; '
        "characters are counted, not bytes."
        if first >= 0
        else "The answer stands nowhere in the context: copy it from there to the letter."
    )
    raise ValueError(
        f"{place}: expected the answer {text!r} at character {start} of the context, {where}. "
        f"{cure}"
    )


def _text(fields: Any, key: str, place: str) -> str:
    text = _field(fields, key, str, place)
    if not text.strip():
        raise ValueError(
            f'{place}: expected "{key}" with some text, found {text!r}. Fill it in, or leave out '
            "what it belongs to."
        )
    if not text.isascii():
        check_surrogates(text, place)
    return text


def _field(fields: Any, key: str, kind: type, place: str) -> Any:
    # A truth value counts as a whole number in Python.
    if type(fields) is dict and type(fields.get(key)) is kind:
        return fields[key]
    if type(fields) is not dict:
        found = json.dumps(fields)
    else:
        found = json.dumps(fields[key]) if key in fields else f"the fields {sorted(fields)}"
    found = found if len(found) <= 80 else f"{found[:77]}..."
    raise ValueError(
        f'{place}: expected "{key}" with {_KINDS[kind]}, found {found}. A file looks like '
        f"{_LAYOUT}."
    )
