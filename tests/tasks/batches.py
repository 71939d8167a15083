"""What the tests of the tasks' models share."""

from typing import Any, Dict, List

from allennlp.data import Batch, Instance, Vocabulary


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
