"""What the tests of the tasks' models share."""

from typing import Any, Dict, List

import torch
from allennlp.data import Batch, Instance, Vocabulary
from allennlp.models import Model


def placement(at: str, **elmo: Any) -> Dict[str, Any]:
    """The settings of ELMo at a task's input, output or both, without dropout."""
    return {"type": "elmo-placement", "at": at, "elmo": {"dropout": 0.0, **elmo}}


def make_batch(vocab: Vocabulary, instances: List[Instance], elmo: bool = True) -> Dict[str, Any]:
    """A batch, as a model takes it; without `elmo`, as a baseline's reader indexes it."""
    batch = Batch(instances)
    batch.index_instances(vocab)
    fields = batch.as_tensor_dict()
    for field in fields.values():
        if not elmo and isinstance(field, dict):
            field.pop("elmo", None)
    return fields


def learn(
    model: Model, batches: List[Dict[str, Any]], rate: float, num_epochs: int
) -> Dict[str, float]:
    """Trains a new model with Adam; returns the metrics of its predictions for the same batches."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(num_epochs):
        for batch in batches:
            optimizer.zero_grad()
            model(**batch)["loss"].backward()
            optimizer.step()
    model.get_metrics(reset=True)
    model.eval()
    for batch in batches:
        model(**batch)
    return model.get_metrics(reset=True)
