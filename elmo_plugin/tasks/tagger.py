from typing import Any, Dict, List, Optional, Sequence

import torch

from elmo_plugin.modules.viterbi import decode
from elmo_plugin.tasks.legal_tags import Scores, transition_constraints
from elmo_plugin.tasks.model import TaskModel, at_least_float32


class TaggerModel(TaskModel):
    """
    The base of the models that give each token a tag. A subclass calls `set_tags`, and has `loss`
    and `metric`, which compares sequences of tags.
    """

    #: The name of each tag by its index.
    tags: Sequence[str]

    def set_tags(self, tags: List[str], scheme: str) -> None:
        """Takes the names of the tags, and the scheme that says which sequences are legal."""
        self.tags = tags
        for name, scores in zip(
            ("start", "transition", "end"), transition_constraints(tags, scheme)
        ):
            self.register_buffer(f"{name}_scores", scores, persistent=False)

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
        """Scores of starts, transitions and ends, see `transition_constraints`."""
        return self.start_scores, self.transition_scores, self.end_scores
