"""
How `allennlp predict` reads its input, and what `allennlp evaluate` refuses; see
`elmo_plugin.allennlp_patches`.
"""

import os
import re
import sys
from typing import Any, Dict, Iterator, List

from allennlp.commands.predict import _PredictManager
from allennlp.common import Params
from allennlp.common.util import JsonDict
from allennlp.data import DataLoader, Instance
from allennlp.evaluation import Evaluator
from allennlp.models import Model
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.text_files import Source, numbered_lines

# Compressed files that AllenNLP reads and `numbered_lines` does not.
_OTHER_COMPRESSIONS = (".bz2", ".xz")
# The beginning of errors of `TaskPredictor.load_line`.
_LINE = re.compile(r"^non-empty line \d+: ")


class PredictManager(_PredictManager):
    """Reads the input as UTF-8, with file and line in errors, and refuses an empty input."""

    @property
    def _input_name(self) -> str:
        return "standard input" if self._input_file == "-" else self._input_file

    @overrides
    def _get_json_data(self) -> Iterator[JsonDict]:
        is_other = self._input_file.endswith(_OTHER_COMPRESSIONS)
        yield from self._at_least_one(super()._get_json_data() if is_other else self._objects())

    @overrides
    def _get_instance_data(self) -> Iterator[Instance]:
        yield from self._at_least_one(super()._get_instance_data())

    def _objects(self) -> Iterator[JsonDict]:
        source: Source = self._input_file
        if source == "-":
            # Not as a path such as /dev/stdin, which would reopen a redirected file at its start.
            source = open(sys.stdin.fileno(), "rb", closefd=False)
        for number, line in numbered_lines(source):
            if line and not line.isspace():
                try:
                    yield self._predictor.load_line(f"{line}\n")
                except ValueError as error:
                    reason = _LINE.sub("", str(error))
                    raise ValueError(f"{self._input_name}:{number}: {reason}") from error

    def _at_least_one(self, inputs: Iterator[Any]) -> Iterator[Any]:
        first = next(inputs, None)
        if first is None:
            raise ConfigurationError(
                f"{self._input_name}: expected at least one instance to predict, found none."
            )
        yield first
        yield from inputs


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
