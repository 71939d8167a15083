from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import RegularizerApplicator
from allennlp.nn.util import get_text_field_mask
from overrides import overrides
from torch.nn.functional import cross_entropy

from elmo_plugin.elmo import Placement
from elmo_plugin.elmo.placement import Nowhere, PlacedText
from elmo_plugin.tasks.squad.attention import BiAttention, SelfAttention
from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.tasks.squad.spans import best_spans
from elmo_plugin.training import require_labels
from elmo_plugin.util.errors import ConfigurationError

# What is needed to learn from, for the error.
_LABELS = "answers, in the field `answers` of each question,"


@Model.register("elmo-squad")
class Squad(Model):
    """
    The model of [Clark and Gardner (2017)](https://arxiv.org/abs/1710.10723) for one paragraph, as
    Peters et al. (2018) use it: passage and question go through one encoder, the passage attends
    to the question, then, in a residual block with an encoder of its own, to itself, and two more
    encoders say where the answer starts and, knowing what the first said, where it ends. ELMo joins
    the words, the shared encoder's output, or both, with scores that both texts share.

    # Parameters

    vocab : `Vocabulary`
    text_field_embedder : `TextFieldEmbedder`
        Embeds the words.
    encoder : `Lazy[Seq2SeqEncoder]`
        All four encoders are built from it; their `input_size` is given by the model. The width of
        its output is that of both attentions' results too.
    placement : `Optional[Placement]`, optional (default = `None`)
        Where ELMo joins; nowhere by default.
    dropout : `float`, optional (default = `0.2`)
        On what goes into the encoders of texts, and what comes out of them, the same for all
        tokens of a text.
    max_answer_length : `int`, optional (default = `17`)
        Most tokens of an answer that is predicted.
    num_best : `int`, optional (default = `20`)
        How many answers are returned.
    regularizer : `Optional[RegularizerApplicator]`
        The paper's λ.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ConfigurationError`
        If `max_answer_length` or `num_best` is below 1.
    """

    default_predictor = "elmo-squad"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Lazy[Seq2SeqEncoder],
        placement: Optional[Placement] = None,
        dropout: float = 0.2,
        max_answer_length: int = 17,
        num_best: int = 20,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(vocab, regularizer, serialization_dir)
        if min(max_answer_length, num_best) < 1:
            raise ConfigurationError(
                "elmo-squad: expected `max_answer_length` and `num_best` of at least 1, found "
                f"{max_answer_length} and {num_best}."
            )
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Nowhere()
        self.encoder = encoder.construct(
            input_size=text_field_embedder.get_output_dim() + self.placement.input_dim
        )
        dim = self.encoder.get_output_dim()
        self.attention = BiAttention(dim + self.placement.output_dim, dim)
        self.passage_encoder = encoder.construct(input_size=dim)
        self.self_attention = SelfAttention(dim, dim)
        self.start_encoder = encoder.construct(input_size=dim)
        self.end_encoder = encoder.construct(input_size=2 * dim)
        self.start = torch.nn.Linear(dim, 1)
        self.end = torch.nn.Linear(dim, 1)
        self.dropout = InputVariationalDropout(dropout)
        self.max_answer_length = max_answer_length
        self.num_best = num_best
        self.scores = SquadScores()

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
        # Parameters

        question, passage : `TextFieldTensors`
        metadata : `List[Dict[str, Any]]`
            What `SquadReader` says of each question.
        answer_span : `Optional[torch.Tensor]`
            Shape `(batch_size, 2)`. First and last token of the answer.
        passage_sentences : `Optional[torch.Tensor]`
            Shape `(batch_size, num_passage_tokens)`. Which sentence each token is in, for the biLM.

        # Returns

        `Dict[str, Any]`
            `best_spans` and `best_span_probabilities`, see `best_spans`; the metadata; and `loss`
            where there are answers.
        """
        require_labels(self, answer_span, _LABELS)
        question_mask, passage_mask = get_text_field_mask(question), get_text_field_mask(passage)
        asked = self._encode(self.placement(question), question_mask)
        read = self._encode(self.placement(passage, passage_sentences), passage_mask)
        # Shape: (batch_size, num_passage_tokens, dim)
        merged = self.attention(read, asked, passage_mask, question_mask)
        encoded = self.dropout(self.passage_encoder(self.dropout(merged), passage_mask))
        modelled = self.dropout(merged + self.self_attention(encoded, passage_mask))
        started = self.start_encoder(modelled, passage_mask)
        ended = self.end_encoder(torch.cat([modelled, started], dim=2), passage_mask)
        # Shape: (2, batch_size, num_passage_tokens)
        logits = torch.stack([self.start(started), self.end(ended)]).squeeze(3)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        logits = logits.masked_fill(~passage_mask, -torch.inf)
        spans, probabilities = best_spans(*logits, self.max_answer_length, self.num_best)
        outputs = {
            "best_spans": spans,
            "best_span_probabilities": probabilities,
            "metadata": metadata,
        }
        if answer_span is not None:
            outputs["loss"] = sum(map(cross_entropy, logits, answer_span.unbind(dim=1)))
        labelled = [number for number, each in enumerate(metadata) if each["answers"]]
        if labelled:
            answers = _best_answers(spans, metadata)
            self.scores(
                [answers[number] for number in labelled],
                [metadata[number]["answers"] for number in labelled],
            )
        return outputs

    def _encode(self, text: PlacedText, mask: torch.Tensor) -> torch.Tensor:
        """Shape `(batch_size, num_tokens, encoded_dim)`."""
        embedded = text.at_input(self.text_field_embedder(text.words))
        return text.at_output(self.dropout(self.encoder(self.dropout(embedded), mask)))

    @overrides(check_signature=False)
    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Adds `answer`, the text of the likeliest."""
        answers = _best_answers(output_dict["best_spans"], output_dict["metadata"])
        return {**output_dict, "answer": answers}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """`em` and `f1`; nothing where the corpus has no answers."""
        return self.scores.get_metric(reset)


def _best_answers(spans: torch.Tensor, metadata: List[Dict[str, Any]]) -> List[str]:
    """The text of the likeliest answer to each question."""
    answers = []
    for (first, last), question in zip(spans[:, 0].tolist(), metadata):
        offsets = question["token_offsets"]
        answers.append(question["passage"][offsets[first][0] : offsets[last][1]])
    return answers
