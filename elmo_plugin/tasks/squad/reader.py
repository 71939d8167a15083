from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import torch
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import MetadataField, SpanField, TensorField, TextField
from overrides import overrides
from spacy.tokens import Doc

from elmo_plugin.corpora.squad import Answer, Question, read_paragraphs
from elmo_plugin.corpora.tokenizer import sentences_by_rules, tokenize_with_spacy
from elmo_plugin.tasks.reader import TaskReader

Offsets = List[Tuple[int, int]]


@DatasetReader.register("elmo-squad")
class SquadReader(TaskReader):
    """
    Reads SQuAD's JSON, one instance per question in the order of the file. Paragraphs are never
    truncated. Questions without answers are read for prediction. spaCy's English rules split words
    at hyphens: 1.4 % of the answers in SQuAD's dev set then begin or end inside a token, against
    2.6 % with the Penn Treebank's rules. The training target is the tokens that the first answer
    overlaps. With `by_sentence`, the biLM reads each sentence of a passage separately.
    """

    text_fields = ("question", "passage")
    gold_field = "answer_span"

    def __init__(self, by_sentence: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._by_sentence = by_sentence
        # The last passage, its fields and its offsets. Its questions share them, to save memory.
        self._last: Tuple[str, Dict[str, Field], Offsets] = ("", {}, [])

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for context, question in self.shard_iterable(_questions(file_path)):
            yield self.text_to_instance(
                question.text, context, question.answers, question_id=question.question_id
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
        """Question and passage have words. Answers lie in the passage; none if unknown."""
        passage_fields, offsets = self._tokenised(passage)
        question_words = [token.text for token in tokenize_with_spacy(question)]
        assert offsets and question_words, (question, passage)
        words = TextField([Token(word) for word in question_words])
        fields: Dict[str, Field] = {"question": words, **passage_fields}
        if answers:
            span = _overlapping(offsets, answers[0])
            fields["answer_span"] = SpanField(*span, passage_fields["passage"])
        fields["metadata"] = MetadataField(
            {
                "question_id": question_id,
                "question": question,
                "passage": passage,
                "token_offsets": offsets,
                "answers": [answer.text for answer in answers],
            }
        )
        return Instance(fields)

    def _tokenised(self, passage: str) -> Tuple[Dict[str, Field], Offsets]:
        """The fields of a passage, and the characters of its tokens."""
        if self._last[0] != passage:
            tokens = tokenize_with_spacy(passage)
            fields: Dict[str, Field] = {
                "passage": TextField([Token(token.text) for token in tokens])
            }
            if self._by_sentence:
                fields["passage_sentences"] = _sentences(tokens[0].doc)
            offsets = [(token.idx, token.idx + len(token)) for token in tokens]
            self._last = (passage, fields, offsets)
        return self._last[1:]


def _questions(path: str) -> Iterator[Tuple[str, Question]]:
    for paragraph in read_paragraphs(path):
        for question in paragraph.questions:
            yield paragraph.context, question


def _overlapping(offsets: Offsets, answer: Answer) -> Tuple[int, int]:
    end = answer.start + len(answer.text)
    tokens = [
        number
        for number, (start, stop) in enumerate(offsets)
        if start < end and answer.start < stop
    ]
    assert tokens, answer
    return tokens[0], tokens[-1]


def _sentences(doc: Doc) -> TensorField:
    """The sentence number of each token, from 0."""
    # Shape: (num_passage_tokens,)
    numbers = torch.tensor(
        [
            number
            for number, sentence in enumerate(sentences_by_rules(doc))
            for token in sentence
            if not token.is_space
        ]
    )
    # The rules may find a sentence of white space only, whose number is skipped here.
    return TensorField(numbers.unique_consecutive(return_inverse=True)[1], padding_value=-1)
