import logging
from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator, RegularizerApplicator
from allennlp.nn.util import get_text_field_mask, sequence_cross_entropy_with_logits
from overrides import overrides

from elmo_plugin.elmo import Placement
from elmo_plugin.elmo.placement import Nowhere
from elmo_plugin.modules.viterbi import decode
from elmo_plugin.tasks.srl.decoding import bio_constraints
from elmo_plugin.tasks.srl.metric import SrlSpanF1
from elmo_plugin.tasks.srl.reader import ROLES
from elmo_plugin.training import require_labels

logger = logging.getLogger(__name__)

# What is needed to learn from, for the error.
_LABELS = "roles, in CoNLL-2012 a column for each predicate,"


@Model.register("elmo-srl")
class SemanticRoleLabeler(Model):
    """
    The SRL model of [He et al. (2017)](https://aclanthology.org/P17-1044/): words and a mark on
    the predicate go through a deep encoder, each token gets a role, and the best sequence of
    roles that is legal BIO is the answer. ELMo joins the words, the encoder's output, or both.

    # Parameters

    vocab : `Vocabulary`
    text_field_embedder : `TextFieldEmbedder`
        Embeds the words.
    encoder : `Lazy[Seq2SeqEncoder]`
        Its `input_size` is given by the model: words, ELMo and predicate mark together.
    placement : `Optional[Placement]`, optional (default = `None`)
        Where ELMo joins; nowhere by default.
    predicate_dim : `int`, optional (default = `100`)
        Width of the embedding that marks the predicate.
    initializer : `Optional[InitializerApplicator]`
    regularizer : `Optional[RegularizerApplicator]`
        The paper's λ: `{regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}`.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.
    """

    default_predictor = "elmo-srl"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Lazy[Seq2SeqEncoder],
        placement: Optional[Placement] = None,
        predicate_dim: int = 100,
        initializer: Optional[InitializerApplicator] = None,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(vocab, regularizer, serialization_dir)
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Nowhere()
        self.predicate_embedding = torch.nn.Embedding(2, predicate_dim)
        self.encoder = encoder.construct(
            input_size=text_field_embedder.get_output_dim()
            + self.placement.input_dim
            + predicate_dim
        )
        labels = vocab.get_index_to_token_vocabulary(ROLES)
        self.role_projection = torch.nn.Linear(
            self.encoder.get_output_dim() + self.placement.output_dim, len(labels)
        )
        self.unknown_role = vocab.get_token_index(vocab._oov_token, ROLES)
        start_scores, transition_scores = bio_constraints(labels)
        # Padding and the unknown role are no answers.
        no_answers = [index for index, label in labels.items() if label[:2] not in _BIO]
        start_scores[no_answers] = transition_scores[:, no_answers] = float("-inf")
        self.register_buffer("start_scores", start_scores, persistent=False)
        self.register_buffer("transition_scores", transition_scores, persistent=False)
        self.metric = SrlSpanF1()
        if initializer is not None:
            initializer(self)

    @overrides(check_signature=False)
    def forward(
        self,
        tokens: TextFieldTensors,
        predicate_indicator: torch.Tensor,
        metadata: List[Dict[str, Any]],
        tags: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
        predicate_indicator : `torch.Tensor`
            Shape `(batch_size, num_tokens)`, 1 on the predicate.
        metadata : `List[Dict[str, Any]]`
            What `SrlReader` says of each instance.
        tags : `Optional[torch.Tensor]`
            Shape `(batch_size, num_tokens)`. Gold roles.

        # Returns

        `Dict[str, Any]`
            `loss` where there are gold roles; outside training `tags`, the best legal BIO
            sequence of each instance, beside its metadata.
        """
        require_labels(self, tags, _LABELS)
        mask = get_text_field_mask(tokens)
        text = self.placement(tokens)
        # Shape: (batch_size, num_tokens, embedding_dim)
        embedded = text.at_input(self.text_field_embedder(text.words))
        embedded = torch.cat([embedded, self.predicate_embedding(predicate_indicator)], dim=-1)
        encoded = text.at_output(self.encoder(embedded, mask))
        # Shape: (batch_size, num_tokens, num_labels)
        logits = self.role_projection(encoded)
        outputs: Dict[str, Any] = {}
        if tags is not None:
            outputs["loss"] = self._loss(logits, mask, tags)
        if not self.training:
            outputs.update(self._answers(logits, mask, metadata))
        return outputs

    def _loss(self, logits: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """Summed over tokens, averaged over instances, as He et al. (2017) do."""
        # A role that the model has no place for, new in this corpus, cannot be learned from.
        weights = mask & (tags != self.unknown_role) & (tags < logits.size(-1))
        tags = tags.masked_fill(~weights, 0)
        per_token = sequence_cross_entropy_with_logits(logits, tags, weights, average="token")
        return per_token * weights.sum() / len(weights)

    def _answers(
        self, logits: torch.Tensor, mask: torch.Tensor, metadata: List[Dict[str, Any]]
    ) -> Dict[str, Any]:
        sequences = decode(
            logits.log_softmax(dim=-1), mask, self.start_scores, self.transition_scores
        )
        names = self.vocab.get_index_to_token_vocabulary(ROLES)
        predicted = [[names[index] for index in sequence] for sequence in sequences]
        gold = [instance["gold_tags"] for instance in metadata]
        labelled = [number for number, tags in enumerate(gold) if tags is not None]
        if labelled:
            self.metric([predicted[n] for n in labelled], [gold[n] for n in labelled])
        return {"tags": predicted, "metadata": metadata}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        Outside training: precision, recall and F1 by `srl-eval.pl`'s rules, overall and, when a
        corpus is finished, per role; the table of all roles is logged then. Nothing where the
        corpus has no gold roles.
        """
        if self.training:
            return {}
        table = self.metric.table() if reset else ""
        metrics = self.metric.get_metric(reset)
        if not metrics.keys() - _OVERALL:
            return {}
        if not reset:
            return {name: metrics[name] for name in _OVERALL}
        logger.info("Roles, by the rules of srl-eval.pl:\n%s", table)
        return metrics


_BIO = ("B-", "I-", "O")
_OVERALL = ("precision-overall", "recall-overall", "f1-measure-overall")
