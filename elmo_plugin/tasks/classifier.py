from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import torch
from overrides import overrides

from elmo_plugin.tasks.model import TaskModel, at_least_float32


class ClassifierModel(TaskModel):
    """
    The base of the models that choose one of several labels. A subclass sets `label_names`, the
    name of each label by its index, and `metric`, AllenNLP's `CategoricalAccuracy`.
    """

    label_names: Union[Sequence[str], Mapping[int, str]]

    def outputs(
        self, logits: torch.Tensor, label: Optional[torch.Tensor], metadata: List[Dict[str, Any]]
    ) -> Dict[str, Any]:
        """
        What `forward` returns: `probabilities`, shape `(batch_size, num_labels)`; `metadata`; and
        `loss` if there are labels.
        """
        logits = at_least_float32(logits)
        outputs = {"probabilities": logits.softmax(dim=-1), "metadata": metadata}
        if label is not None:
            outputs["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self.metric(logits, label)
        return outputs

    @overrides(check_signature=False)
    def make_output_human_readable(self, output_dict: Dict[str, Any]) -> Dict[str, Any]:
        """Adds `label`, the name of the most probable label."""
        best = output_dict["probabilities"].argmax(dim=-1).tolist()
        return {**output_dict, "label": [self.label_names[index] for index in best]}

    @overrides
    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        """`accuracy`, also in training; empty for a corpus without labels."""
        return {"accuracy": self.metric.get_metric(reset)} if self.metric.total_count else {}
