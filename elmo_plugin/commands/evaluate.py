"""What `allennlp evaluate` refuses; see `elmo_plugin.allennlp_patches`."""

import os
from typing import Any, Dict, List

from allennlp.common import Params
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator
from allennlp.models import Model

from elmo_plugin.util.errors import ConfigurationError


class CheckedEvaluator:
    """Calls an evaluator of AllenNLP, and refuses data with nothing to evaluate."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @classmethod
    def from_params(cls, params: Params) -> "CheckedEvaluator":
        return cls(Evaluator.from_params(params))

    def __call__(
        self, model: Model, data_loader: DataLoader, *settings: Any, **outputs: Any
    ) -> Dict[str, Any]:
        """
        Raises `ConfigurationError` if there was no batch, or neither a loss nor a metric. Files
        that the call has created are then removed.
        """
        new = [path for path in outputs.values() if path is not None and not os.path.exists(path)]
        # One entry per batch. `None`, because any other value would replace the model's output.
        batches: List[None] = []
        handle = model.register_forward_hook(lambda *_: batches.append(None))
        try:
            metrics = self._evaluator(model, data_loader, *settings, **outputs)
        finally:
            handle.remove()
        # A loss is among the metrics, too.
        if batches and metrics:
            return metrics
        for path in filter(os.path.exists, new):
            os.remove(path)
        missing = "labels to compare predictions with" if batches else "instances"
        hint = " To predict them, use allennlp predict --use-dataset-reader." if batches else ""
        location = getattr(data_loader, "data_path", "the data")
        raise ConfigurationError(f"{location}: expected {missing}, found none.{hint}")
