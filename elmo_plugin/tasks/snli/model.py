from typing import Any, Dict, List, Optional, Sequence

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.nn.util import (
    get_text_field_mask,
    masked_max,
    masked_mean,
    masked_softmax,
    weighted_sum,
)
from overrides import overrides

from elmo_plugin.corpora import snli
from elmo_plugin.tasks.model import ClassifierModel
from elmo_plugin.tasks.reader import LABELS


@Model.register("elmo-pairs")
class Esim(ClassifierModel):
    """
    The sequential model of [Chen et al. (2017)](https://aclanthology.org/P17-1152/), as in Peters
    et al. (2018). `encoder` reads premise and hypothesis. Each token is compared with its soft
    alignment in the other text. `composition_encoder` reads the comparisons. A classifier reads
    mean and maximum over the tokens of both texts. ELMo is concatenated with the words, the first
    encoder's output, or both; both texts share its layer weights.

    # Parameters

    feedforward_dim : `int`
        Width of both ReLU layers: the projection of the comparisons, and the classifier's.
    dropout : `float`
        On the encoders' inputs, with one mask for all tokens of a text, and in the classifier.
    attention_dropout : `float`
        On the comparisons.
    """

    default_predictor = "elmo-pairs"
    needed_labels = "labels (a column of the file)"
    group_key = "premise"
    #: Labels that are the same for every corpus.
    fixed_labels: Sequence[str] = ()

    def __init__(
        self,
        encoder: Lazy[Seq2SeqEncoder],
        composition_encoder: Lazy[Seq2SeqEncoder],
        feedforward_dim: int = 300,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.label_names = self.fixed_labels or self.vocab.get_index_to_token_vocabulary(LABELS)
        self.encoder = encoder.construct(input_size=self.input_dim)
        encoded_dim = self.encoder.get_output_dim() + self.placement.output_dim
        self.projection = torch.nn.Linear(4 * encoded_dim, feedforward_dim)
        self.composition_encoder = composition_encoder.construct(input_size=feedforward_dim)
        self.classifier = torch.nn.Sequential(
            torch.nn.Dropout(dropout),
            torch.nn.Linear(4 * self.composition_encoder.get_output_dim(), feedforward_dim),
            torch.nn.ReLU(),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(feedforward_dim, len(self.label_names)),
        )
        self.input_dropout = InputVariationalDropout(dropout)
        self.attention_dropout = torch.nn.Dropout(attention_dropout)

    @overrides(check_signature=False)
    def forward(
        self,
        premise: TextFieldTensors,
        hypothesis: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        label: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """`label`, shape `(batch_size,)`, holds indices into `label_names`."""
        # One batch of both texts needs half the recurrent steps and one pass of the biLM: first the
        # premises, then the hypotheses, so that `num_texts` is twice `batch_size`.
        tokens = _stacked(premise, hypothesis)
        mask = get_text_field_mask(tokens)
        # Shape: (num_texts, num_tokens, input_dim)
        text, embedded = self.embed(tokens)
        # Shape: (num_texts, num_tokens, encoded_dim)
        encoded = text.at_output(self.encoder(self.input_dropout(embedded), mask))
        return self.outputs(self._classify(encoded, mask), label, metadata)

    def _classify(self, encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The logits of each pair, shape `(batch_size, num_labels)`."""
        # Shape: (num_real_tokens, 4 * encoded_dim)
        comparisons = self.attention_dropout(_comparisons(encoded, mask))
        projected = torch.relu(self.projection(comparisons))
        # Shape: (num_texts, num_tokens, feedforward_dim)
        compared = projected.new_zeros(*mask.shape, projected.size(-1))
        compared[mask] = projected
        composed = self.composition_encoder(self.input_dropout(compared), mask)
        # Shape: (batch_size, 4 * composition_dim)
        pooled = torch.cat(_pooled(composed, mask).chunk(2), dim=-1)
        # Shape: (batch_size, num_labels)
        return self.classifier(pooled)


@Model.register("elmo-snli")
class EntailmentClassifier(Esim):
    """ESIM with the labels of SNLI."""

    default_predictor = "elmo-snli"
    needed_labels = "labels (the field `gold_label`)"
    fixed_labels = snli.LABELS


def _stacked(first: TextFieldTensors, second: TextFieldTensors) -> TextFieldTensors:
    """Joins two batches of texts, first `first`, then `second`."""
    return {
        indexer: {name: _rows(tensor, second[indexer][name]) for name, tensor in tensors.items()}
        for indexer, tensors in first.items()
    }


def _rows(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    # If all texts are empty, one token of padding: encoders expect at least one.
    sizes = [max(*pair, 1) for pair in zip(first.shape[1:], second.shape[1:])]
    rows = first.new_zeros(len(first) + len(second), *sizes)
    rows[(slice(len(first)), *map(slice, first.shape[1:]))] = first
    rows[(slice(len(first), None), *map(slice, second.shape[1:]))] = second
    return rows


def _comparisons(encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    `[a; ã; a - ã; a ⊙ ã]`, shape `(num_real_tokens, 4 * encoded_dim)`. `ã` is the mean of the other
    text's tokens, weighted by a softmax over their dot products with `a` (equations 11 to 15).
    `encoded` is zero at padding, and has all premises first, then all hypotheses.
    """
    batch_size = len(encoded) // 2
    others, others_mask = encoded.roll(batch_size, dims=0), mask.roll(batch_size, dims=0)
    # Shape: (num_texts, num_tokens, num_other_tokens)
    scores = encoded.bmm(others.transpose(1, 2))
    # AllenNLP's default sets scores of padding to 0, which exceeds real scores far below 0; with
    # `memory_efficient` it sets them to the lowest number.
    weights = masked_softmax(scores, others_mask.unsqueeze(1), memory_efficient=True)
    # Shape: (num_real_tokens, encoded_dim)
    tokens, aligned = encoded[mask], weighted_sum(others, weights)[mask]
    return torch.cat([tokens, aligned, tokens - aligned, tokens * aligned], dim=-1)


def _pooled(composed: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean and maximum over tokens, shape `(num_texts, 2 * composition_dim)`; 0 for empty texts."""
    mask = mask.unsqueeze(-1)
    maximum = masked_max(composed, mask, dim=1).masked_fill(~mask.any(dim=1), 0.0)
    return torch.cat([masked_mean(composed, mask, dim=1), maximum], dim=-1)
