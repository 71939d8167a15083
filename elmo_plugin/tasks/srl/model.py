from typing import Any, Dict, List, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask, sequence_cross_entropy_with_logits
from overrides import overrides

from elmo_plugin.tasks.model import TaggerModel
from elmo_plugin.tasks.srl.metric import SrlSpanF1
from elmo_plugin.tasks.srl.reader import ROLES


@Model.register("elmo-srl")
class SemanticRoleLabeler(TaggerModel):
    """
    The SRL model of [He et al. (2017)](https://aclanthology.org/P17-1044/). A deep encoder reads
    word embeddings, concatenated with an embedding of width `predicate_dim` that marks the
    predicate. A linear layer scores the roles of each token. Viterbi decoding finds the best legal
    BIO sequence. ELMo is concatenated with the words, the encoder's output, or both.
    """

    default_predictor = "elmo-srl"
    needed_labels = "roles (in CoNLL-2012, one column per predicate)"
    running_metrics = ("precision-overall", "recall-overall", "f1-measure-overall")
    table_heading = "Roles, by the rules of srl-eval.pl"
    group_key = "words"

    def __init__(
        self,
        encoder: Lazy[Seq2SeqEncoder],
        predicate_dim: int = 100,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.predicate_embedding = torch.nn.Embedding(2, predicate_dim)
        self.encoder = encoder.construct(input_size=self.input_dim + predicate_dim)
        names = self.vocab.get_index_to_token_vocabulary(ROLES)
        self.set_tags([names[index] for index in range(len(names))], "BIO")
        self.tag_projection = torch.nn.Linear(
            self.encoder.get_output_dim() + self.placement.output_dim, len(self.tags)
        )
        self.unknown_role = self.vocab.get_token_index(self.vocab._oov_token, ROLES)
        self.metric = SrlSpanF1()

    @overrides(check_signature=False)
    def forward(
        self,
        tokens: TextFieldTensors,
        predicate_indicator: torch.Tensor,
        metadata: List[Dict[str, Any]],
        tags: Optional[torch.Tensor] = None,
    ) -> Dict[str, Any]:
        """Tags are BIO roles. `predicate_indicator`, of the same shape, is 1 on the predicate."""
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, num_tokens, input_dim)
        text, embedded = self.embed(tokens)
        embedded = torch.cat([embedded, self.predicate_embedding(predicate_indicator)], dim=-1)
        encoded = text.at_output(self.encoder(embedded, mask))
        return self.outputs(self.tag_projection(encoded), mask, tags, metadata)

    @overrides
    def loss(self, logits: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """Summed over tokens, averaged over instances, as He et al. (2017) do."""
        # Roles that the training corpus lacks are left out of the loss.
        weights = mask & (tags != self.unknown_role) & (tags < logits.size(-1))
        tags = tags.masked_fill(~weights, 0)
        per_token = sequence_cross_entropy_with_logits(logits, tags, weights, average="token")
        return per_token * weights.sum() / len(weights)
