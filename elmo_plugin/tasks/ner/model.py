import logging
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField, InputVariationalDropout, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask
from overrides import overrides

from elmo_plugin.tasks.model import Scores, TaggerModel
from elmo_plugin.tasks.ner.metric import EntityF1, TagAccuracy
from elmo_plugin.tasks.ner.reader import ENTITIES, KINDS
from elmo_plugin.util.errors import check_one_of

logger = logging.getLogger(__name__)

# Padding and the unknown tag come first in the vocabulary.
_NUM_SPECIAL = 2


@Model.register("elmo-tagger")
class Tagger(TaggerModel):
    """
    The NER model of [Peters et al. (2018)](https://arxiv.org/abs/1802.05365), section 4, for any
    tags: two BiLSTM layers, and a conditional random field, which predicts the best sequence.
    ELMo is concatenated with the words, the lower BiLSTM's output, or both. With ELMo's last layer
    alone at the output, this is TagLM ([Peters et al. 2017](https://arxiv.org/abs/1705.00108)).
    `dropout` is on the input of each layer, with one mask for all tokens of a sentence. `tags` is
    as in the reader: `spans` are predicted in legal sequences of BIOUL and scored by F1, `plain`
    tags in any sequence and scored by accuracy.
    """

    default_predictor = "elmo-tagger"
    needed_labels = "tags (a column of the file)"
    running_metrics = ("accuracy", "precision-overall", "recall-overall", "f1-measure-overall")
    table_heading = "Spans, by the rules of conlleval"
    group_key = "document"
    metric: Union[EntityF1, TagAccuracy]

    def __init__(
        self,
        lower_encoder: Lazy[Seq2SeqEncoder],
        upper_encoder: Lazy[Seq2SeqEncoder],
        dropout: float = 0.5,
        tags: str = "spans",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_one_of(KINDS, tags=tags)
        #: Whether tags mark spans.
        self.finds_spans = tags == "spans"
        self.dropout = InputVariationalDropout(dropout)
        self.lower_encoder = lower_encoder.construct(input_size=self.input_dim)
        self.upper_encoder = upper_encoder.construct(
            input_size=self.lower_encoder.get_output_dim() + self.placement.output_dim
        )
        names = self.vocab.get_index_to_token_vocabulary(ENTITIES)
        known = [names[index] for index in range(_NUM_SPECIAL, len(names))]
        # A CRF cannot be built without tags.
        self.require_labels(known or None)
        self.set_tags(known, "BIOUL" if self.finds_spans else None)
        self.tag_projection = torch.nn.Linear(self.upper_encoder.get_output_dim(), len(known))
        self.crf = ConditionalRandomField(len(known))
        self.metric = EntityF1()
        kind = "tags are spans in BIO: scored by F1"
        if not self.finds_spans:
            self.metric, self.table_heading = TagAccuracy(), ""
            kind = f"plain tags, {len(known)} of them: scored by accuracy"
        if self.default_predictor == Tagger.default_predictor:
            logger.info("%s: %s", self.default_predictor, kind)

    @overrides(check_signature=False)
    def forward(
        self,
        tokens: TextFieldTensors,
        metadata: List[Dict[str, Any]],
        tags: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """Returns `TaggerModel.outputs`; the tags of spans are in BIOUL."""
        if tags is not None:
            gold = (self._label(tag) for each in metadata for tag in each["gold_tags"] or ())
            self.say_new_labels(gold, map(self._label, self.tags))
        return self.outputs(*self.emissions(tokens), tags, metadata)

    def emissions(self, tokens: TextFieldTensors) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        The scores of each token's tags before the conditional random field, shape
        `(batch_size, num_tokens, num_tags)`, and the mask, `(batch_size, num_tokens)`.
        """
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, num_tokens, input_dim)
        text, embedded = self.embed(tokens)
        encoded = text.at_output(self.lower_encoder(self.dropout(embedded), mask))
        return self.tag_projection(self.upper_encoder(self.dropout(encoded), mask)), mask

    def _label(self, tag: str) -> str:
        """A plain tag, or the type of a span."""
        return tag[2:] if self.finds_spans else tag

    @overrides
    def loss(self, logits: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """Negative log-likelihood, summed over a sentence and averaged over sentences."""
        targets = tags - _NUM_SPECIAL
        # A sentence with a tag that the training corpus lacks has no likelihood under the CRF.
        known = ((targets >= 0) & (targets < len(self.tags)) | ~mask).all(dim=1)
        if not known.any():
            return logits.sum() * 0.0
        targets = targets.masked_fill(~mask, 0)
        log_likelihood = self.crf(logits[known], targets[known], mask[known])
        return -log_likelihood / len(tags)

    @overrides
    def scores_of_sequences(self) -> Scores:
        """The scores of the CRF, -inf if not legal."""
        learned = self.crf.start_transitions, self.crf.transitions, self.crf.end_transitions
        pairs = zip(learned, super().scores_of_sequences())
        start, transitions, end = (scores + legal.to(scores) for scores, legal in pairs)
        return start, transitions, end


@Model.register("elmo-ner")
class NamedEntityRecognizer(Tagger):
    """The tagger of named entities: by default of those of CoNLL-2003."""

    default_predictor = "elmo-ner"
    needed_labels = "tags (the last column of CoNLL-2003)"
    table_heading = "Entities, by the rules of conlleval"
