from typing import Any, Dict, List, Optional, Tuple

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask
from overrides import overrides
from torch.nn.functional import cross_entropy, pad

from elmo_plugin.tasks.model import TaskModel, at_least_float32
from elmo_plugin.tasks.squad.attention import BiAttention, SelfAttention
from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.util.errors import check_least


@Model.register("elmo-squad")
class BidafSelfAttention(TaskModel):
    """
    The model of [Clark and Gardner (2017)](https://arxiv.org/abs/1710.10723) for one paragraph, as
    in Peters et al. (2018). An encoder reads passage and question. Bidirectional attention joins
    the question to the passage. A residual block of an encoder and self-attention follows. Two more
    encoders predict the answer's start and end; the last reads the start encoder's output, too.
    ELMo is concatenated with the words, the first encoder's output, or both; passage and question
    share its layer weights.

    # Parameters

    encoder : `Lazy[Seq2SeqEncoder]`
        All four encoders are built from it. Both attention layers have its output width.
    dropout : `float`
        On input and output of the first two encoders and on the output of the residual block, with
        one mask for all tokens of a text.
    max_answer_length, num_best : `int`
        Tokens of the longest predicted answer, and number of answers returned.
    """

    default_predictor = "elmo-squad"
    needed_labels = "answers (the field `answers` of each question)"
    group_key = "passage"

    def __init__(
        self,
        encoder: Lazy[Seq2SeqEncoder],
        dropout: float = 0.2,
        max_answer_length: int = 17,
        num_best: int = 20,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_least(1, max_answer_length=max_answer_length, num_best=num_best)
        self.encoder = encoder.construct(input_size=self.input_dim)
        dim = self.encoder.get_output_dim()
        self.bi_attention = BiAttention(dim + self.placement.output_dim, dim)
        self.residual_encoder = encoder.construct(input_size=dim)
        self.self_attention = SelfAttention(dim, dim)
        self.start_encoder = encoder.construct(input_size=dim)
        self.end_encoder = encoder.construct(input_size=2 * dim)
        self.start_projection = torch.nn.Linear(dim, 1)
        self.end_projection = torch.nn.Linear(dim, 1)
        self.dropout = InputVariationalDropout(dropout)
        self.max_answer_length = max_answer_length
        self.num_best = num_best
        self.metric = SquadScores()

    @overrides(check_signature=False)
    def forward(
        self,
        question: TextFieldTensors,
        passage: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        answer_span: Optional[torch.Tensor] = None,
        passage_sentences: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """
        `answer_span`, shape `(batch_size, 2)`, is the first and last token of the answer.
        `passage_sentences`, shape `(batch_size, num_passage_tokens)`, numbers the sentences for the
        biLM. Returns `best_spans` and `best_span_probabilities` (see the function `best_spans`),
        `answer`, the text of the best span, `metadata`, and `loss` if there are answers.
        """
        question_mask, passage_mask = get_text_field_mask(question), get_text_field_mask(passage)
        encoded_question = self._encode(question_mask, question)
        encoded_passage = self._encode_passages(passage_mask, passage, passage_sentences, metadata)
        # Shape: (batch_size, num_passage_tokens, dim)
        attended = self.bi_attention(encoded_passage, encoded_question, passage_mask, question_mask)
        encoded = self.dropout(self.residual_encoder(self.dropout(attended), passage_mask))
        residual = self.dropout(attended + self.self_attention(encoded, passage_mask))
        starts = self.start_encoder(residual, passage_mask)
        ends = self.end_encoder(torch.cat([residual, starts], dim=2), passage_mask)
        # Shape: (2, batch_size, num_passage_tokens)
        logits = torch.stack([self.start_projection(starts), self.end_projection(ends)]).squeeze(3)
        logits = at_least_float32(logits).masked_fill(~passage_mask, -torch.inf)
        spans, probabilities = best_spans(
            logits[0], logits[1], self.max_answer_length, self.num_best
        )
        answers = _best_answers(spans, metadata)
        outputs = {
            "best_spans": spans,
            "best_span_probabilities": probabilities,
            "answer": answers,
            "metadata": metadata,
        }
        if answer_span is not None:
            outputs["loss"] = sum(map(cross_entropy, logits, answer_span.unbind(dim=1)))
        gold = [question["answers"] or None for question in metadata]
        self.score(answers, gold)
        return outputs

    def _encode(self, mask: torch.Tensor, *tokens: Any) -> torch.Tensor:
        """Shape `(batch_size, num_tokens, encoded_dim)`, from the arguments of `embed`."""
        text, embedded = self.embed(*tokens)
        return text.at_output(self.dropout(self.encoder(self.dropout(embedded), mask)))

    def _encode_passages(
        self,
        mask: torch.Tensor,
        passage: TextFieldTensors,
        sentences: Optional[torch.Tensor],
        metadata: List[Dict[str, Any]],
    ) -> torch.Tensor:
        """Encodes a repeated passage once. In training, each question has its own dropout."""
        if self.training:
            return self._encode(mask, passage, sentences)
        texts = [question["passage"] for question in metadata]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        rows = [texts.index(text) for text in numbers]
        distinct = {
            name: {part: values[rows] for part, values in tensors.items()}
            for name, tensors in passage.items()
        }
        sentences = None if sentences is None else sentences[rows]
        return self._encode(mask[rows], distinct, sentences)[[numbers[text] for text in texts]]

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """`em` and `f1`, also in training; empty for a corpus without answers."""
        return self.metric.get_metric(reset)


def _best_answers(spans: torch.Tensor, metadata: List[Dict[str, Any]]) -> List[str]:
    answers = []
    for (first, last), question in zip(spans[:, 0].tolist(), metadata):
        offsets = question["token_offsets"]
        answers.append(question["passage"][offsets[first][0] : offsets[last][1]])
    return answers


def best_spans(
    start_logits: torch.Tensor, end_logits: torch.Tensor, max_length: int, num_best: int
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    The most probable spans of at most `max_length` tokens, shape `(batch_size, num_best, 2)`, and
    their probabilities: products of start and end, normalised over all such spans. Logits have the
    shape `(batch_size, num_tokens)`, -inf at padding. Missing spans are -1, with probability 0.
    Probabilities are NaN if the model has diverged. Memory grows with
    `batch_size * num_tokens * max_length`.
    """
    # Shape: (batch_size, num_tokens, max_length)
    ends = pad(end_logits, (0, max_length - 1), value=-torch.inf).unfold(1, max_length, 1)
    # Shape: (batch_size, num_tokens * max_length)
    scores = (start_logits.unsqueeze(2) + ends).flatten(1)
    # If the model has diverged, no span is found, and the trainer reports that its loss is NaN.
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    total = scores.logsumexp(dim=1, keepdim=True)
    scores, indices = scores.topk(min(num_best, scores.size(1)), dim=1)
    starts = indices.div(max_length, rounding_mode="floor")
    # Shape: (batch_size, num_found, 2)
    spans = torch.stack([starts, starts + indices % max_length], dim=2)
    spans = spans.masked_fill(scores.isneginf().unsqueeze(2), -1)
    missing = num_best - scores.size(1)
    return pad(spans, (0, 0, 0, missing), value=-1), pad((scores - total).exp(), (0, missing))
