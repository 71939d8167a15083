from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import RegularizerApplicator
from allennlp.nn.util import (
    get_text_field_mask,
    masked_max,
    masked_mean,
    masked_softmax,
    weighted_sum,
)
from allennlp.training.metrics import CategoricalAccuracy
from overrides import overrides

from elmo_plugin.elmo import Placement
from elmo_plugin.elmo.placement import Nowhere
from elmo_plugin.tasks.sst.reader import LABELS
from elmo_plugin.training import require_labels

# What is needed to learn from, for the error.
_LABELS = "labels, at the nodes of the trees,"


@Model.register("elmo-sst")
class SentimentClassifier(Model):
    """
    The biattentive classification network of [McCann et al.
    (2017)](https://arxiv.org/abs/1708.00107), section 5, with ReLU layers in place of maxout as in
    Peters et al. (2018). Of one text `X`, encoded, each word attends to all of them and finds a
    context `C`; an integrator reads `[X; X - C; X ⊙ C]`; and what it makes of the words is pooled
    to their maximum, mean, minimum and a weighted sum, which are classified.

    ELMo joins the words before the first layer, the integrator's output before it is pooled, or
    both: pooling and its weights see it as part of a word's vector.

    # Parameters

    vocab : `Vocabulary`
    text_field_embedder : `TextFieldEmbedder`
        Embeds the words.
    feedforward : `Lazy[FeedForward]`
        Reads each word's vector, ELMo included; its `input_dim` is given by the model.
    encoder, integrator : `Lazy[Seq2SeqEncoder]`
        Their `input_size` is given by the model.
    classifier : `Lazy[FeedForward]`
        What comes after pooling and before the classes; its `input_dim` is given by the model.
    placement : `Optional[Placement]`, optional (default = `None`)
        Where ELMo joins; nowhere by default.
    dropout : `float`, optional (default = `0.25`)
        Dropout on the vectors of the tokens: word vectors and, at the input, ELMo.
    pooled_dropout : `float`, optional (default = `0.1`)
        Dropout on the pooled vector, which the classifier reads.
    regularizer : `Optional[RegularizerApplicator]`
        The paper's λ: `{regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}`.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.
    """

    default_predictor = "elmo-sst"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        feedforward: Lazy[FeedForward],
        encoder: Lazy[Seq2SeqEncoder],
        integrator: Lazy[Seq2SeqEncoder],
        classifier: Lazy[FeedForward],
        placement: Optional[Placement] = None,
        dropout: float = 0.25,
        pooled_dropout: float = 0.1,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(vocab, regularizer, serialization_dir)
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Nowhere()
        self.dropout = torch.nn.Dropout(dropout)
        self.feedforward = feedforward.construct(
            input_dim=text_field_embedder.get_output_dim() + self.placement.input_dim
        )
        self.encoder = encoder.construct(input_size=self.feedforward.get_output_dim())
        self.integrator = integrator.construct(input_size=3 * self.encoder.get_output_dim())
        pooled_dim = self.integrator.get_output_dim() + self.placement.output_dim
        # The softmax over it would not notice a bias.
        self.pooling_scores = torch.nn.Linear(pooled_dim, 1, bias=False)
        self.pooled_dropout = torch.nn.Dropout(pooled_dropout)
        self.classifier = classifier.construct(input_dim=4 * pooled_dim)
        self.class_projection = torch.nn.Linear(
            self.classifier.get_output_dim(), vocab.get_vocab_size(LABELS)
        )
        self.accuracy = CategoricalAccuracy()

    @overrides(check_signature=False)
    def forward(
        self,
        tokens: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        label: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
        metadata : `List[Dict[str, Any]]`
            What `SstReader` says of each instance.
        label : `Optional[torch.Tensor]`
            Shape `(batch_size,)`. Gold classes.

        # Returns

        `Dict[str, Any]`
            `probabilities`, shape `(batch_size, num_labels)`, `metadata`, and `loss` where there
            are gold classes.

        # Raises

        `ConfigurationError`
            If there are none in training.
        """
        require_labels(self, label, _LABELS)
        mask = get_text_field_mask(tokens)
        text = self.placement(tokens)
        # Shape: (batch_size, num_tokens, embedding_dim)
        embedded = self.dropout(text.at_input(self.text_field_embedder(text.words)))
        # Shape: (batch_size, num_tokens, encoder_dim)
        encoded = self.encoder(self.feedforward(embedded), mask)
        # Shape: (batch_size, num_tokens, pooled_dim)
        integrated = text.at_output(self.integrator(_with_context(encoded, mask), mask))
        # Shape: (batch_size, num_labels)
        pooled = self.pooled_dropout(self._pool(integrated, mask))
        logits = self.class_projection(self.classifier(pooled))
        outputs = {"probabilities": logits.softmax(dim=-1), "metadata": metadata}
        if label is not None:
            outputs["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self.accuracy(logits, label)
        return outputs

    def _pool(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Maximum, mean, minimum and weighted sum: shape `(batch_size, 4 * pooled_dim)`."""
        # Shape: (batch_size, num_tokens)
        scores = self.pooling_scores(vectors).squeeze(-1)
        weights = masked_softmax(scores, mask, memory_efficient=True)
        # Shape: (batch_size, num_tokens, 1)
        is_token = mask.unsqueeze(-1)
        pooled = [
            masked_max(vectors, is_token, dim=1),
            masked_mean(vectors, is_token, dim=1),
            -masked_max(-vectors, is_token, dim=1),
            weighted_sum(vectors, weights),
        ]
        return torch.cat(pooled, dim=-1)

    @overrides(check_signature=False)
    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Adds `label`, the name of the likeliest class."""
        best = output_dict["probabilities"].argmax(dim=-1).tolist()
        names = self.vocab.get_index_to_token_vocabulary(LABELS)
        return {**output_dict, "label": [names[index] for index in best]}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """`accuracy`."""
        return {"accuracy": self.accuracy.get_metric(reset)}


def _with_context(encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    encoded : `torch.Tensor`
        Shape `(batch_size, num_tokens, dim)`.
    mask : `torch.Tensor`
        Shape `(batch_size, num_tokens)`.

    # Returns

    `torch.Tensor`
        `[X; X - C; X ⊙ C]`, shape `(batch_size, num_tokens, 3 * dim)`, where `C` is what each
        word finds when it attends to all.
    """
    # Shape: (batch_size, num_tokens, num_tokens)
    affinity = encoded.bmm(encoded.transpose(1, 2))
    # AllenNLP's other masked softmax lets padding, a score of 0, drown scores far below it.
    context = weighted_sum(encoded, masked_softmax(affinity, mask, memory_efficient=True))
    return torch.cat([encoded, encoded - context, encoded * context], dim=-1)
