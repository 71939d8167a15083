import logging
from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.conditional_random_field import allowed_transitions
from allennlp.modules.input_variational_dropout import InputVariationalDropout
from allennlp.nn import InitializerApplicator, RegularizerApplicator
from allennlp.nn.util import get_text_field_mask
from overrides import overrides

from elmo_plugin.elmo import Placement
from elmo_plugin.elmo.placement import Nowhere
from elmo_plugin.modules.viterbi import decode
from elmo_plugin.tasks.ner.metric import EntityF1
from elmo_plugin.tasks.ner.reader import ENTITIES
from elmo_plugin.training import require_labels

logger = logging.getLogger(__name__)

# What is needed to learn from, for the error.
_LABELS = "tags, in the last column of CoNLL-2003,"


@Model.register("elmo-ner")
class NamedEntityRecognizer(Model):
    """
    The NER model of section 4 of [Peters et al. (2018)](https://arxiv.org/abs/1802.05365), after
    [Peters et al. (2017)](https://arxiv.org/abs/1705.00108): words go through two BiLSTM layers,
    variational dropout on the input of each, and a conditional random field over BIOUL tags. The
    answer is the best sequence of tags that is legal.

    ELMo joins the words, or the output of the lower BiLSTM, as in the paper's other models, where
    more layers follow on "the output" too. With ELMo's last layer alone this is the TagLM of
    Peters et al. (2017).

    # Parameters

    vocab : `Vocabulary`
    text_field_embedder : `TextFieldEmbedder`
        Embeds the words.
    lower_encoder, upper_encoder : `Lazy[Seq2SeqEncoder]`
        The two layers. Their `input_size` is given by the model: words or the lower layer's
        output, and ELMo where it joins.
    placement : `Optional[Placement]`, optional (default = `None`)
        Where ELMo joins; nowhere by default.
    dropout : `float`, optional (default = `0.5`)
        Of the input of each layer: what it silences, it silences in all words of a sentence.
    initializer : `Optional[InitializerApplicator]`
    regularizer : `Optional[RegularizerApplicator]`
        The paper's λ: `{regexes: [['layer_scores', {type: 'l2', alpha: 0.1}]]}`.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ConfigurationError`
        If the training corpus has no tags.
    """

    default_predictor = "elmo-ner"

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        lower_encoder: Lazy[Seq2SeqEncoder],
        upper_encoder: Lazy[Seq2SeqEncoder],
        placement: Optional[Placement] = None,
        dropout: float = 0.5,
        initializer: Optional[InitializerApplicator] = None,
        regularizer: Optional[RegularizerApplicator] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(vocab, regularizer, serialization_dir)
        self.text_field_embedder = text_field_embedder
        self.placement = placement or Nowhere()
        self.dropout = InputVariationalDropout(dropout)
        self.lower_encoder = lower_encoder.construct(
            input_size=text_field_embedder.get_output_dim() + self.placement.input_dim
        )
        self.upper_encoder = upper_encoder.construct(
            input_size=self.lower_encoder.get_output_dim() + self.placement.output_dim
        )
        self.tags = _known_tags(vocab)
        # A CRF over no tags cannot even be built.
        require_labels(self, self.tags or None, _LABELS)
        self.tag_projection = torch.nn.Linear(self.upper_encoder.get_output_dim(), len(self.tags))
        self.crf = ConditionalRandomField(
            len(self.tags), allowed_transitions("BIOUL", dict(enumerate(self.tags)))
        )
        forbidden = self.crf._constraint_mask == 0
        self.register_buffer("forbidden", forbidden, persistent=False)
        self.metric = EntityF1()
        if initializer is not None:
            initializer(self)

    @overrides(check_signature=False)
    def forward(
        self,
        tokens: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        tags: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
        metadata : `List[Dict[str, Any]]`
            What `NerReader` says of each instance.
        tags : `Optional[torch.Tensor]`
            Shape `(batch_size, num_tokens)`. Gold tags.

        # Returns

        `Dict[str, Any]`
            `loss` where there are gold tags; outside training `tags`, the best legal BIOUL
            sequence of each instance, beside its metadata.
        """
        require_labels(self, tags, _LABELS)
        mask = get_text_field_mask(tokens)
        text = self.placement(tokens)
        # Shape: (batch_size, num_tokens, embedding_dim)
        embedded = text.at_input(self.text_field_embedder(text.words))
        encoded = text.at_output(self.lower_encoder(self.dropout(embedded), mask))
        encoded = self.upper_encoder(self.dropout(encoded), mask)
        # Shape: (batch_size, num_tokens, num_labels)
        logits = self.tag_projection(encoded)
        outputs: Dict[str, Any] = {}
        if tags is not None:
            outputs["loss"] = self._loss(logits, mask, tags)
        if not self.training:
            outputs.update(self._answers(logits, mask, metadata))
        return outputs

    def _loss(self, logits: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """Negative log-likelihood, summed over a sentence and averaged over sentences."""
        targets = tags - _NUM_NO_TAGS
        # A tag that the model has no place for, new in this corpus, makes its sentence impossible.
        known = ((targets >= 0) & (targets < len(self.tags)) | ~mask).all(dim=1)
        if not known.any():
            return logits.sum() * 0.0
        targets = targets.masked_fill(~mask, 0)
        log_likelihood = self.crf(logits[known], targets[known], mask[known])
        return -log_likelihood / len(tags)

    def _answers(
        self, logits: torch.Tensor, mask: torch.Tensor, metadata: List[Dict[str, Any]]
    ) -> Dict[str, Any]:
        sequences = decode(logits, mask, *self._legal_scores())
        predicted = [[self.tags[index] for index in sequence] for sequence in sequences]
        gold = [instance["gold_tags"] for instance in metadata]
        labelled = [number for number, tags in enumerate(gold) if tags is not None]
        if labelled:
            self.metric([predicted[n] for n in labelled], [gold[n] for n in labelled])
        return {"tags": predicted, "metadata": metadata}

    def _legal_scores(self) -> List[torch.Tensor]:
        """The field's scores of a start, of a transition and of an end, -inf where not legal."""
        # AllenNLP gives the start and the end a row and a column of their own.
        start, end = len(self.tags), len(self.tags) + 1
        scores = (
            (self.crf.start_transitions, self.forbidden[start, :start]),
            (self.crf.transitions, self.forbidden[:start, :start]),
            (self.crf.end_transitions, self.forbidden[:start, end]),
        )
        return [score.masked_fill(forbidden, float("-inf")) for score, forbidden in scores]

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """
        Outside training: accuracy, and precision, recall and F1 of entities by `conlleval`'s
        rules, overall and, when a corpus is finished, per type; the table of all types is logged
        then. Nothing where the corpus has no gold tags.
        """
        if self.training:
            return {}
        table = self.metric.table() if reset else ""
        metrics = self.metric.get_metric(reset)
        if not metrics:
            return {}
        if not reset:
            return {name: metrics[name] for name in _OVERALL}
        logger.info("Entities, by the rules of conlleval:\n%s", table)
        return metrics


# Padding and the unknown tag come first in the vocabulary, and are no answers.
_NUM_NO_TAGS = 2
_OVERALL = ("accuracy", "precision-overall", "recall-overall", "f1-measure-overall")


def _known_tags(vocab: Vocabulary) -> List[str]:
    """The tags of training, without the vocabulary's entries for padding and the unknown."""
    assert vocab.is_padded(ENTITIES)
    names = vocab.get_index_to_token_vocabulary(ENTITIES)
    return [names[index] for index in range(_NUM_NO_TAGS, len(names))]
