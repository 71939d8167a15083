"""SQuAD's paragraphs and questions (Rajpurkar et al. 2016), one JSON object per file."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, Iterator, Tuple

from elmo_plugin.corpora.json_lines import field, parse_object
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath, numbered_lines

_LAYOUT = (
    '{"data": [{"title": "…", "paragraphs": [{"context": "…", "qas": [{"id": "…", '
    '"question": "…", "answers": [{"text": "…", "answer_start": 0}]}]}]}]}'
)
_field = partial(field, example=_LAYOUT)


@dataclass(frozen=True)
class Answer:
    """An answer: a span of the paragraph."""

    text: str
    #: The character offset in the paragraph.
    start: int


@dataclass(frozen=True)
class Question:
    question_id: str
    text: str
    #: One per annotator; empty if the file has no answers.
    answers: Tuple[Answer, ...]


@dataclass(frozen=True)
class Paragraph:
    """A text and the questions on it."""

    context: str
    questions: Tuple[Question, ...]


def read_paragraphs(path: FilePath) -> Iterator[Paragraph]:
    """
    Yields the paragraphs of a file in the layout of SQuAD 1.1. Raises `ValueError`, with article,
    paragraph and question, if the layout is another, a text is empty, an answer is not at its
    offset, an id is repeated, a question is impossible (SQuAD 2.0), or only some are answered.
    """
    text = "\n".join(line for _, line in numbered_lines(path, newline="\n"))
    whole = parse_object(text, str(path), _LAYOUT)
    is_answered: Dict[str, bool] = {}
    for fields, location in _paragraphs(whole, str(path)):
        context = _text(fields, "context", location)
        questions = tuple(
            _question(question, number, context, location, is_answered)
            for number, question in enumerate(_field(fields, "qas", list, location), start=1)
        )
        yield Paragraph(context, questions)
    expect(is_answered, path, f"at least one question, as in {_LAYOUT}", "none")


def _paragraphs(whole: Any, path: str) -> Iterator[Tuple[Dict[str, Any], str]]:
    """Each paragraph with its location for error messages."""
    for number, article in enumerate(_field(whole, "data", list, path), start=1):
        location = f"{path}: article {number}"
        if isinstance(article, dict) and isinstance(article.get("title"), str):
            location += f' "{article["title"]}"'
        paragraphs = _field(article, "paragraphs", list, location)
        for paragraph_number, paragraph in enumerate(paragraphs, start=1):
            yield paragraph, f"{location}, paragraph {paragraph_number}"


def _question(
    fields: Any, number: int, context: str, location: str, is_answered: Dict[str, bool]
) -> Question:
    """Reads a question, and adds to `is_answered` whether it has answers."""
    question_id = _text(fields, "id", f"{location}, question {number}")
    location = f"{location}, question {question_id}"
    text = _text(fields, "question", location)
    expect(
        not fields.get("is_impossible"),
        location,
        "a question that the paragraph answers",
        '"is_impossible", a field of SQuAD 2.0',
        "Use SQuAD 1.1, or leave such questions out.",
    )
    answers = _field({"answers": [], **fields}, "answers", list, location)
    expect(question_id not in is_answered, location, 'a unique "id"', "it a second time")
    is_expected = next(iter(is_answered.values()), bool(answers))
    expect(
        bool(answers) == is_expected,
        location,
        f"{'an answer' if is_expected else 'no answer'}, as for the questions before",
        len(answers),
        "Answer all questions of a file or none.",
    )
    is_answered[question_id] = is_expected
    return Question(question_id, text, tuple(_answer(a, context, location) for a in answers))


def _answer(fields: Any, context: str, location: str) -> Answer:
    text, start = _text(fields, "text", location), _field(fields, "answer_start", int, location)
    found = context[start : start + len(text)] if start >= 0 else ""
    expected = f"the answer {text!r} at character {start} of the context"
    expect(found == text, location, expected, repr(found))
    return Answer(text, start)


def _text(fields: Any, key: str, location: str) -> str:
    text = _field(fields, key, str, location)
    expect(text.strip(), location, f'"{key}" with some text', repr(text))
    return text
