from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
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

from elmo_plugin.corpora.snli import LABELS
from elmo_plugin.elmo import Placement
from elmo_plugin.elmo.placement import Nowhere
from elmo_plugin.training import require_labels

# What is needed to learn from, for the error.
_LABELS = "labels, in the field `gold_label`,"


@Model.register("elmo-snli")
class Esim(Model):
    """
    The sequential model of [Chen et al. (2017)](https://aclanthology.org/P17-1152/) as Peters et
    al. (2018) use it: premise and hypothesis go through one encoder, each token is compared with
    what it is aligned to in the other text, the comparisons are composed by a second encoder,
    and mean and maximum over the tokens of both decide. ELMo joins the words, the first
    encoder's output, or both, with scores that both texts share.

    # Parameters

    vocab : `Vocabulary`
    text_field_embedder : `TextFieldEmbedder`
        Embeds the words.
    encoder, composition : `Lazy[Seq2SeqEncoder]`
        Read the words and, later, the comparisons. Their `input_size` is given by the model.
    placement : `Optional[Placement]`, optional (default = `None`)
        Where ELMo joins; nowhere by default.
    feedforward_dim : `int`, optional (default = `300`)
        Width of both hidden layers, which have a ReLU: of the comparisons, and of the decision.
    dropout : `float`, optional (default = `0.5`)
        On what goes into the encoders, the same for all tokens of a text, and into the last two
        layers.
    attention_dropout : `float`, optional (default = `0.0`)
        On what comes out of the alignment.
    regularizer : `Optional[RegularizerApplicator]`
        The paper's λ, and the L2 penalty on the weights.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.
    """

    default_predictor = "elmo-snli"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Lazy[Seq2SeqEncoder],
        composition: Lazy[Seq2SeqEncoder],
        placement: Optional[Placement] = None,
        feedforward_dim: int = 300,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(vocab, regularizer, serialization_dir)
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Nowhere()
        self.encoder = encoder.construct(
            input_size=text_field_embedder.get_output_dim() + self.placement.input_dim
        )
        encoded_dim = self.encoder.get_output_dim() + self.placement.output_dim
        self.projection = torch.nn.Linear(4 * encoded_dim, feedforward_dim)
        self.composition = composition.construct(input_size=feedforward_dim)
        self.decision = torch.nn.Sequential(
            torch.nn.Dropout(dropout),
            torch.nn.Linear(4 * self.composition.get_output_dim(), feedforward_dim),
            torch.nn.ReLU(),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(feedforward_dim, len(LABELS)),
        )
        self.input_dropout = InputVariationalDropout(dropout)
        self.attention_dropout = torch.nn.Dropout(attention_dropout)
        self.accuracy = CategoricalAccuracy()

    @overrides(check_signature=False)
    def forward(
        self,
        premise: TextFieldTensors,
        hypothesis: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        label: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        premise, hypothesis : `TextFieldTensors`
        metadata : `List[Dict[str, Any]]`
            What `SnliReader` says of each pair.
        label : `Optional[torch.Tensor]`
            Shape `(batch_size,)`. Positions in `LABELS`.

        # Returns

        `Dict[str, Any]`
            `probabilities`, shape `(batch_size, num_labels)`, the metadata, and `loss` where there
            are labels.
        """
        require_labels(self, label, _LABELS)
        # One batch of both texts needs half the recurrent steps and one pass of ELMo. Its second
        # half has the hypotheses; `num_texts` is twice `batch_size`.
        tokens = _stacked(premise, hypothesis)
        mask = get_text_field_mask(tokens)
        text = self.placement(tokens)
        # Shape: (num_texts, num_tokens, embedding_dim)
        embedded = text.at_input(self.text_field_embedder(text.words))
        # Shape: (num_texts, num_tokens, encoded_dim)
        encoded = text.at_output(self.encoder(self.input_dropout(embedded), mask))
        logits = self._decide(encoded, mask)
        outputs = {"probabilities": logits.softmax(dim=-1), "metadata": metadata}
        if label is not None:
            outputs["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self.accuracy(logits, label)
        return outputs

    def _decide(self, encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        From shape `(num_texts, num_tokens, encoded_dim)` to the logits of each pair, shape
        `(batch_size, num_labels)`.
        """
        # Shape: (num_real_tokens, 4 * encoded_dim)
        comparisons = self.attention_dropout(_comparisons(encoded, mask))
        projected = torch.relu(self.projection(comparisons))
        # Shape: (num_texts, num_tokens, feedforward_dim)
        compared = projected.new_zeros(*mask.shape, projected.size(-1))
        compared[mask] = projected
        composed = self.composition(self.input_dropout(compared), mask)
        # Shape: (batch_size, 4 * composition_dim)
        pooled = torch.cat(_pooled(composed, mask).chunk(2), dim=-1)
        # Shape: (batch_size, num_labels)
        return self.decision(pooled)

    @overrides(check_signature=False)
    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Adds `label`, the likeliest of `LABELS`."""
        best = output_dict["probabilities"].argmax(dim=-1).tolist()
        return {**output_dict, "label": [LABELS[index] for index in best]}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """`accuracy`; nothing where the corpus has no labels."""
        if not self.accuracy.total_count:
            return {}
        return {"accuracy": self.accuracy.get_metric(reset)}


def _stacked(first: TextFieldTensors, second: TextFieldTensors) -> TextFieldTensors:
    """Two batches of texts as one, first above second."""
    return {
        indexer: {name: _rows(tensor, second[indexer][name]) for name, tensor in tensors.items()}
        for indexer, tensors in first.items()
    }


def _rows(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    # Where all texts are empty, one token of padding is easier on what follows than none.
    sizes = [max(*pair, 1) for pair in zip(first.shape[1:], second.shape[1:])]
    rows = first.new_zeros(len(first) + len(second), *sizes)
    rows[(slice(len(first)), *map(slice, first.shape[1:]))] = first
    rows[(slice(len(first), None), *map(slice, second.shape[1:]))] = second
    return rows


def _comparisons(encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    `[a; ã; a - ã; a ⊙ ã]`, where ã is what the other text has for the token: the mean of its
    tokens, weighted by a softmax over their products with `a` (equations 11 to 15).

    # Parameters

    encoded : `torch.Tensor`
        Shape `(num_texts, num_tokens, encoded_dim)`, zero at padding. The other text of each is
        half the batch away.
    mask : `torch.Tensor`
        Shape `(num_texts, num_tokens)`.

    # Returns

    `torch.Tensor`
        Shape `(num_real_tokens, 4 * encoded_dim)`. Padding, of which the shorter texts have much,
        is left out.
    """
    batch_size = len(encoded) // 2
    others, others_mask = encoded.roll(batch_size, dims=0), mask.roll(batch_size, dims=0)
    # Shape: (num_texts, num_tokens, num_other_tokens)
    scores = encoded.bmm(others.transpose(1, 2))
    # By filling in the least number, since AllenNLP's default lets scores of padding, which are 0,
    # take the weight from scores far below.
    weights = masked_softmax(scores, others_mask.unsqueeze(1), memory_efficient=True)
    # Shape: (num_real_tokens, encoded_dim)
    tokens, aligned = encoded[mask], weighted_sum(others, weights)[mask]
    return torch.cat([tokens, aligned, tokens - aligned, tokens * aligned], dim=-1)


def _pooled(composed: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Mean and maximum over the tokens, shape `(num_texts, 2 * composition_dim)`; zero for a text
    without tokens.
    """
    mask = mask.unsqueeze(-1)
    maximum = masked_max(composed, mask, dim=1).masked_fill(~mask.any(dim=1), 0.0)
    return torch.cat([masked_mean(composed, mask, dim=1), maximum], dim=-1)
