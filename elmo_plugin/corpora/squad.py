"""SQuAD's paragraphs and questions (Rajpurkar et al. 2016), one JSON object per file."""

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Tuple, Union

from elmo_plugin.corpora.json_lines import check_surrogates, excerpt
from elmo_plugin.util.text_files import numbered_lines

_LAYOUT = (
    '{"data": [{"title": "…", "paragraphs": [{"context": "…", "qas": [{"id": "…", '
    '"question": "…", "answers": [{"text": "…", "answer_start": 0}]}]}]}]}'
)
_KINDS = {str: "a string", list: "a list", int: "an integer"}


@dataclass(frozen=True)
class Answer:
    """An answer to a question: a span of the paragraph."""

    text: str
    #: The character offset of the answer in the paragraph.
    start: int


@dataclass(frozen=True)
class Question:
    """A question on a paragraph."""

    question_id: str
    text: str
    #: One per annotator; empty if the file has no answers.
    answers: Tuple[Answer, ...]


@dataclass(frozen=True)
class Paragraph:
    """A text and the questions on it."""

    context: str
    questions: Tuple[Question, ...]


def read_paragraphs(path: Union[str, os.PathLike]) -> Iterator[Paragraph]:
    """
    Yields the paragraphs of a file (see `find_file`) in the layout of SQuAD 1.1. Either all
    questions have answers or none.

    # Raises

    `ValueError`
        If the file is not JSON of this layout or has no questions; if a context, question or answer
        is empty; if question ids are not unique; if an answer is not at its offset in the context;
        if only some questions have answers, or one is marked as impossible, as in SQuAD 2.0. The
        message names article, paragraph and question.
    """
    is_answered: Dict[str, bool] = {}
    for fields, location in _paragraphs(_load(path), str(path)):
        context = _text(fields, "context", location)
        questions = []
        for number, question_fields in enumerate(_field(fields, "qas", list, location), start=1):
            question = _question(question_fields, context, f"{location}, question {number}")
            _compare(question, is_answered, f"{location}, question {question.question_id}")
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
            "Was the file cut off, or is it in another format?"
        ) from error


def _paragraphs(whole: Any, path: str) -> Iterator[Tuple[Dict[str, Any], str]]:
    """The paragraphs with their location, for error messages."""
    for number, article in enumerate(_field(whole, "data", list, path), start=1):
        location = f"{path}: article {number}"
        if isinstance(article, dict) and isinstance(article.get("title"), str):
            check_surrogates(article["title"], location)
            location += f' "{article["title"]}"'
        paragraphs: List[Any] = _field(article, "paragraphs", list, location)
        for paragraph_number, paragraph in enumerate(paragraphs, start=1):
            yield paragraph, f"{location}, paragraph {paragraph_number}"


def _question(fields: Any, context: str, location: str) -> Question:
    question_id = _text(fields, "id", location)
    location = f"{location.rsplit(' ', 1)[0]} {question_id}"
    text = _text(fields, "question", location)
    if fields.get("is_impossible"):
        raise ValueError(
            f'{location}: expected a question that the paragraph answers, found "is_impossible", '
            "a field of SQuAD 2.0. Use SQuAD 1.1, or leave such questions out."
        )
    answers = _field(fields, "answers", list, location) if "answers" in fields else []
    return Question(
        question_id, text, tuple(_answer(answer, context, location) for answer in answers)
    )


def _compare(question: Question, is_answered: Dict[str, bool], location: str) -> None:
    """Refuses a repeated id, and a file in which only some of the questions have answers."""
    if question.question_id in is_answered:
        raise ValueError(
            f'{location}: expected a unique "id", found it a second time. Predictions are '
            "identified by it: give each question its own."
        )
    is_expected = next(iter(is_answered.values()), bool(question.answers))
    if bool(question.answers) != is_expected:
        raise ValueError(
            f"{location}: expected {'an answer' if is_expected else 'no answer'}, as for the "
            f"questions before, found {len(question.answers)}. Answer all questions of a file or "
            "none."
        )


def _answer(fields: Any, context: str, location: str) -> Answer:
    text, start = _text(fields, "text", location), _field(fields, "answer_start", int, location)
    found = context[start : start + len(text)] if start >= 0 else ""
    if found == text:
        return Answer(text, start)
    where = f"found {found!r}" if found else f"which has {len(context)} characters"
    first = context.find(text)
    hint = (
        f'Set "answer_start" to {first}, its first occurrence, if that is the right one; the '
        "offset counts characters, not bytes."
        if first >= 0
        else "The answer does not occur in the context: copy it from there exactly."
    )
    raise ValueError(
        f"{location}: expected the answer {text!r} at character {start} of the context, {where}. "
        f"{hint}"
    )


def _text(fields: Any, key: str, location: str) -> str:
    text = _field(fields, key, str, location)
    if not text.strip():
        raise ValueError(
            f'{location}: expected "{key}" with some text, found {text!r}. Fill it in, or remove '
            "the entry."
        )
    if not text.isascii():
        check_surrogates(text, location)
    return text


def _field(fields: Any, key: str, kind: type, location: str) -> Any:
    # Not isinstance: bool is a subclass of int.
    if type(fields) is dict and type(fields.get(key)) is kind:
        return fields[key]
    if type(fields) is not dict:
        found = json.dumps(fields)
    else:
        found = json.dumps(fields[key]) if key in fields else f"the fields {sorted(fields)}"
    raise ValueError(
        f'{location}: expected "{key}" with {_KINDS[kind]}, found {excerpt(found)}. A file looks '
        f"like {_LAYOUT}."
    )
