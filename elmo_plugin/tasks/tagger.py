from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from allennlp.modules.conditional_random_field import allowed_transitions

from elmo_plugin.modules.viterbi import decode
from elmo_plugin.tasks.model import TaskModel, at_least_float32

#: Of starts, transitions and ends, see `decode`.
Scores = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class TaggerModel(TaskModel):
    """
    The base of the models that give each token a tag. A subclass calls `set_tags`, and has `loss`
    and `metric`, which compares sequences of tags.
    """

    #: The name of each tag by its index.
    tags: Sequence[str]

    def set_tags(self, tags: List[str], scheme: str) -> None:
        """
        # Parameters

        tags : `List[str]`
            The tags by index. Others, such as the vocabulary's padding and unknown label, are never
            legal.
        scheme : `str`
            `BIO` or `BIOUL`, which says which sequences are legal.
        """
        self.tags = tags
        # 0 if legal, else -inf. AllenNLP's indices of start and end come after those of the tags.
        scores = torch.full((len(tags) + 2, len(tags) + 2), float("-inf"))
        for row, column in allowed_transitions(scheme, dict(enumerate(tags))):
            scores[row, column] = 0.0
        self.register_buffer("start_scores", scores[-2, :-2], persistent=False)
        self.register_buffer("transition_scores", scores[:-2, :-2], persistent=False)
        self.register_buffer("end_scores", scores[:-2, -1], persistent=False)

    def outputs(
        self,
        logits: torch.Tensor,
        mask: torch.Tensor,
        tags: Optional[torch.Tensor],
        metadata: List[Dict[str, Any]],
    ) -> Dict[str, Any]:
        """
        # Parameters

        logits : `torch.Tensor`
            Shape `(batch_size, num_tokens, num_tags)`.
        mask : `torch.Tensor`
            Shape `(batch_size, num_tokens)`.
        tags : `Optional[torch.Tensor]`
            Shape `(batch_size, num_tokens)`. Gold tags.
        metadata : `List[Dict[str, Any]]`
            With the names of the gold tags as `gold_tags`.

        # Returns

        `Dict[str, Any]`
            `loss` if there are gold tags; outside training also `tags`, the best legal sequence of
            each instance, and `metadata`.
        """
        logits = at_least_float32(logits)
        outputs: Dict[str, Any] = {}
        if tags is not None:
            outputs["loss"] = self.loss(logits, mask, tags)
        if not self.training:
            sequences = decode(logits, mask, *self.scores_of_sequences())
            predicted = [[self.tags[index] for index in sequence] for sequence in sequences]
            self.score(predicted, [instance["gold_tags"] for instance in metadata])
            outputs.update(tags=predicted, metadata=metadata)
        return outputs

    def loss(self, logits: torch.Tensor, mask: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """The loss of a batch; the shapes are those of `outputs`."""
        raise NotImplementedError

    def scores_of_sequences(self) -> Scores:
        """Those that restrict `decode` to legal sequences: 0 if legal, else -inf."""
        return self.start_scores, self.transition_scores, self.end_scores
