"""
Makes AllenNLP's `allennlp evaluate` safe for archives from untrusted sources, and lets it refuse
data without instances or labels. `elmo_plugin.commands.predict` explains how this module replaces
names in AllenNLP's.
"""

import os
from functools import partial, wraps
from typing import Any, Dict, List, Optional

from allennlp.commands import evaluate as allennlp_evaluate
from allennlp.common import Params
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator
from allennlp.models import Model

from elmo_plugin.archives import load_archive
from elmo_plugin.archives.configs import registered_types_only
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded

_evaluate_from_archive = allennlp_evaluate.evaluate_from_archive


class CheckedEvaluator:
    """
    An evaluator of AllenNLP that refuses data with nothing to evaluate.

    # Parameters

    evaluator : `Evaluator`
        The evaluator that is called.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @classmethod
    def from_params(cls, params: Params) -> "CheckedEvaluator":
        return cls(Evaluator.from_params(params))

    def __call__(
        self, model: Model, data_loader: DataLoader, *settings: Any, **outputs: Any
    ) -> Dict[str, Any]:
        """
        # Raises

        `ConfigurationError`
            If there was no batch, or neither a loss nor a metric. Files that were not there
            before the call are removed then.
        """
        new = [path for path in outputs.values() if path is not None and not os.path.exists(path)]
        # An entry for each batch; a hook that returned a value would replace the model's output.
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


@wraps(_evaluate_from_archive)
def evaluate_from_archive(
    archive_file: Any, *args: Any, batch_size: Optional[int] = None, **kwargs: Any
) -> Dict[str, Any]:
    if batch_size is not None and batch_size < 1:
        raise ConfigurationError(f"Expected --batch-size of at least 1, found {batch_size}.")
    for name in ("metrics_output_file", "predictions_output_file"):
        kwargs[name] = kwargs.get(name) and str(expanded(kwargs[name]))
    # Data loaders and evaluators, too, are constructed from the archive's configuration.
    with registered_types_only(str(archive_file)):
        try:
            return _evaluate_from_archive(archive_file, *args, batch_size=batch_size, **kwargs)
        except AssertionError as error:
            if "datasets being evaluated" not in str(error):
                raise
            raise ConfigurationError(f"{error} Separate them by commas.") from error


allennlp_evaluate.evaluate_from_archive = evaluate_from_archive
allennlp_evaluate.Evaluator = CheckedEvaluator
allennlp_evaluate.load_archive = partial(load_archive, every_instance=True)
