"""
How `allennlp predict` reads its input, and what `allennlp evaluate` refuses; see
`elmo_plugin.allennlp_patches`.
"""

import logging
import os
from typing import Any, Dict, Iterator, List, Optional

from allennlp.commands.predict import _PredictManager
from allennlp.common import Params
from allennlp.common.util import JsonDict
from allennlp.data import DataLoader, DatasetReader, Instance
from allennlp.evaluation import Evaluator
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.tasks.inputs import at_least_one, read_inputs
from elmo_plugin.util.errors import ConfigurationError

logger = logging.getLogger(__name__)

# Compressed files that AllenNLP reads and `numbered_lines` does not.
_OTHER_COMPRESSIONS = (".bz2", ".xz")


class PredictManager(_PredictManager):
    """Reads raw text and corpora, too, see `read_inputs`. Refuses an empty input."""

    def __init__(self, predictor: Predictor, input_file: str, *settings: Any) -> None:
        super().__init__(predictor, input_file, *settings)
        self._inputs: Optional[Iterator[Any]] = None
        self._dataset_reader: Optional[DatasetReader]
        if self._dataset_reader is None and not input_file.endswith(_OTHER_COMPRESSIONS):
            found = read_inputs(predictor, input_file)
            logger.info(found.description)
            self._inputs = found.items
            if found.is_corpus:
                self._dataset_reader = predictor._dataset_reader

    @overrides
    def _get_json_data(self) -> Iterator[JsonDict]:
        yield from self._inputs or at_least_one(super()._get_json_data(), self._input_file)

    @overrides
    def _get_instance_data(self) -> Iterator[Instance]:
        yield from self._inputs or at_least_one(super()._get_instance_data(), self._input_file)


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
