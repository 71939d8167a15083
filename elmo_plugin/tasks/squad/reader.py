import logging
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import torch
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import MetadataField, SpanField, TensorField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from elmo_plugin.corpora.squad import Answer, Question, read_paragraphs
from elmo_plugin.tasks.tokenizer import tokenize_with_spacy

logger = logging.getLogger(__name__)

Offsets = List[Tuple[int, int]]


@dataclass(frozen=True)
class _Passage:
    """What all questions on a paragraph share, so that memory does not grow with their number."""

    text: str
    field: TextField
    words: List[str]
    offsets: Offsets
    sentences: Optional[TensorField]


@DatasetReader.register("elmo-squad")
class SquadReader(DatasetReader):
    """
    Reads SQuAD's JSON; one instance per question, in the order of the file. Words are those of
    spaCy's English rules. They divide words with hyphens, so that more answers begin and end where
    words do than with the Penn Treebank's: all but 1.4 % of SQuAD's dev, against 2.6 %. Paragraphs
    are never cut. Questions without answers are read for prediction.

    A model learns from the first answer to a question. One that does not begin and end where
    words do is learned as the words that it touches; the number of those is logged.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    by_sentence : `bool`, optional (default = `False`)
        Say of each word of a passage in which sentence it is, by spaCy's rules, so that a biLM
        can read one sentence at a time; it reads whole passages otherwise.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read only so many questions.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ValueError`
        If a file is malformed; the message names article, paragraph and question.
    """

    def __init__(
        self,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        by_sentence: bool = False,
        max_instances: Optional[int] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(
            max_instances=max_instances,
            manual_distributed_sharding=True,
            manual_multiprocess_sharding=True,
            serialization_dir=serialization_dir,
        )
        self._token_indexers = token_indexers or {"words": SingleIdTokenIndexer()}
        self._by_sentence = by_sentence
        self._passage: Optional[_Passage] = None

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        num_questions = num_answers = num_inexact = 0
        try:
            for context, question in self.shard_iterable(_questions(file_path)):
                instance = self.text_to_instance(
                    question.text, context, question.answers, question_id=question.question_id
                )
                num_questions += 1
                if question.answers:
                    num_answers += 1
                    num_inexact += not _is_exact(instance, question.answers[0])
                yield instance
        finally:
            # Whoever wanted only so many questions does not come back for the end.
            if num_questions and not num_answers:
                logger.info(
                    "%s: no question has an answer: they can be predicted, not learned or scored",
                    file_path,
                )
            if num_inexact:
                logger.info(
                    "%s: %d of %d answers (%.2f%%) do not begin and end where words do; each is "
                    "learned as the words that it touches",
                    file_path,
                    num_inexact,
                    num_answers,
                    100 * num_inexact / num_answers,
                )

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        question: str,
        passage: str,
        answers: Sequence[Answer] = (),
        *,
        question_id: Optional[str] = None,
    ) -> Instance:
        """
        # Parameters

        question, passage : `str`
            Neither may be empty.
        answers : `Sequence[Answer]`, optional (default = `()`)
            The answers, where they are known; the first is learned.
        question_id : `Optional[str]`
            What the question is called in its corpus.

        # Raises

        `ValueError`
            If question or passage has no words, or the first answer is beyond the passage.
        """
        shared = self._shared(passage)
        question_words = [token.text for token in tokenize_with_spacy(question)]
        if not shared.words or not question_words:
            raise ValueError(
                f"expected a question and a passage with some words, found {question!r} and "
                f"{passage!r}. Fill in the empty one."
            )
        fields: Dict[str, Field] = {
            "question": TextField([Token(word) for word in question_words]),
            "passage": shared.field,
        }
        if answers:
            fields["answer_span"] = SpanField(*_touched(shared.offsets, answers[0]), shared.field)
        if shared.sentences is not None:
            fields["passage_sentences"] = shared.sentences
        fields["metadata"] = MetadataField(
            {
                "question_id": question_id,
                "question": question,
                "passage": passage,
                "question_tokens": question_words,
                "passage_tokens": shared.words,
                "token_offsets": shared.offsets,
                "answers": [answer.text for answer in answers],
            }
        )
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        for name in ("question", "passage"):
            instance[name].token_indexers = self._token_indexers

    def _shared(self, passage: str) -> _Passage:
        """The passage of the question before, if it is the same."""
        if self._passage is None or self._passage.text != passage:
            tokens = tokenize_with_spacy(passage)
            words = [token.text for token in tokens]
            self._passage = _Passage(
                text=passage,
                field=TextField([Token(word) for word in words]),
                words=words,
                offsets=[(token.idx, token.idx + len(token)) for token in tokens],
                sentences=_sentences(tokens[0].doc) if self._by_sentence and tokens else None,
            )
        return self._passage


def _questions(path: str) -> Iterator[Tuple[str, Question]]:
    for paragraph in read_paragraphs(path):
        for question in paragraph.questions:
            yield paragraph.context, question


def _touched(offsets: Offsets, answer: Answer) -> Tuple[int, int]:
    """The first and the last word that have a character of the answer."""
    end = answer.start + len(answer.text)
    touched = [
        number
        for number, (start, stop) in enumerate(offsets)
        if start < end and answer.start < stop
    ]
    if not touched:
        raise ValueError(
            f"expected an answer within the passage, found {answer.text!r} at character "
            f"{answer.start}. Correct where it starts."
        )
    return touched[0], touched[-1]


def _is_exact(instance: Instance, answer: Answer) -> bool:
    span, offsets = instance["answer_span"], instance["metadata"].metadata["token_offsets"]
    covered = offsets[span.span_start][0], offsets[span.span_end][1]
    return covered == (answer.start, answer.start + len(answer.text))


def _sentences(doc: Doc) -> TensorField:
    """The number of the sentence of each word, from 0."""
    # Shape: (num_passage_tokens,)
    numbers = torch.tensor(
        [
            number
            for number, sentence in enumerate(Sentencizer()(doc).sents)
            for token in sentence
            if not token.is_space
        ]
    )
    # Space alone may be taken for a sentence, but is none.
    return TensorField(numbers.unique_consecutive(return_inverse=True)[1], padding_value=-1)
