from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.nn.util import (
    get_text_field_mask,
    masked_max,
    masked_mean,
    masked_softmax,
    weighted_sum,
)
from overrides import overrides

from elmo_plugin.tasks.model import ClassifierModel
from elmo_plugin.tasks.reader import LABELS


@Model.register("elmo-classifier")
class TextClassifier(ClassifierModel):
    """
    The biattentive classification network of [McCann et al.
    (2017)](https://arxiv.org/abs/1708.00107), section 5, with ReLU layers instead of maxout, as in
    Peters et al. (2018). The encoded text `X` attends to itself, which gives `C`. An integrator
    reads `[X; X - C; X ⊙ C]`. A classifier reads the maximum, mean, minimum and weighted sum of its
    output over the tokens. ELMo is concatenated with the words, the integrator's output, or both.

    # Parameters

    feedforward, classifier : `Lazy[FeedForward]`
        The layers before the encoder, and the layers after pooling.
    dropout, pooled_dropout : `float`
        On the embedded words, ELMo included, and on the pooled vector.
    """

    default_predictor = "elmo-classifier"
    needed_labels = "labels (a column of the file)"

    def __init__(
        self,
        feedforward: Lazy[FeedForward],
        encoder: Lazy[Seq2SeqEncoder],
        integrator: Lazy[Seq2SeqEncoder],
        classifier: Lazy[FeedForward],
        dropout: float = 0.25,
        pooled_dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dropout = torch.nn.Dropout(dropout)
        self.feedforward = feedforward.construct(input_dim=self.input_dim)
        self.encoder = encoder.construct(input_size=self.feedforward.get_output_dim())
        self.integrator = integrator.construct(input_size=3 * self.encoder.get_output_dim())
        pooled_dim = self.integrator.get_output_dim() + self.placement.output_dim
        # No bias: the softmax over the scores cancels it.
        self.pooling_attention = torch.nn.Linear(pooled_dim, 1, bias=False)
        self.pooled_dropout = torch.nn.Dropout(pooled_dropout)
        self.classifier = classifier.construct(input_dim=4 * pooled_dim)
        self.label_names = self.vocab.get_index_to_token_vocabulary(LABELS)
        self.output_projection = torch.nn.Linear(
            self.classifier.get_output_dim(), len(self.label_names)
        )

    @overrides(check_signature=False)
    def forward(
        self,
        tokens: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        label: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """Returns `ClassifierModel.outputs`. `label` has the shape `(batch_size,)`."""
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, num_tokens, input_dim)
        text, embedded = self.embed(tokens)
        # Shape: (batch_size, num_tokens, encoder_dim)
        encoded = self.encoder(self.feedforward(self.dropout(embedded)), mask)
        # Shape: (batch_size, num_tokens, pooled_dim)
        integrated = text.at_output(self.integrator(_with_context(encoded, mask), mask))
        # Shape: (batch_size, 4 * pooled_dim)
        pooled = self.pooled_dropout(self._pool(integrated, mask))
        return self.outputs(self.output_projection(self.classifier(pooled)), label, metadata)

    def _pool(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Maximum, mean, minimum and weighted sum: shape `(batch_size, 4 * pooled_dim)`."""
        # Shape: (batch_size, num_tokens)
        scores = self.pooling_attention(vectors).squeeze(-1)
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


@Model.register("elmo-sst")
class SentimentClassifier(TextClassifier):
    """The classifier of the sentiments of the Stanford Sentiment Treebank."""

    default_predictor = "elmo-sst"
    needed_labels = "labels (at the nodes of the trees)"


def _with_context(encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`[X; X - C; X ⊙ C]`, where `C` is the mean of `X` by each token's self-attention."""
    # Shape: (batch_size, num_tokens, num_tokens)
    affinity = encoded.bmm(encoded.transpose(1, 2))
    # Without `memory_efficient`, AllenNLP sets scores of padding to 0, which exceeds real scores
    # far below 0.
    context = weighted_sum(encoded, masked_softmax(affinity, mask, memory_efficient=True))
    return torch.cat([encoded, encoded - context, encoded * context], dim=-1)
