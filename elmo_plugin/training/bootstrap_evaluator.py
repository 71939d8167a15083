import copy
import random
from os import PathLike
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy
import torch
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator, SimpleEvaluator
from allennlp.models import Model
from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.training.metric_states import load_metric_state, metric_state
from elmo_plugin.util.atomic_write import write_json
from elmo_plugin.util.errors import ConfigurationError

_Path = Tuple[Any, ...]


@Evaluator.register("elmo-bootstrap")
class BootstrapEvaluator(SimpleEvaluator):
    """
    AllenNLP's evaluator, which writes the metrics of bootstrap samples of the instances in place of
    predictions:

        allennlp evaluate ARCHIVE TEST --predictions-output-file samples.json \\
            -o '{"evaluation": {"type": "elmo-bootstrap"}}'

    The samples of two models have the same instances, if their data loaders read the same text in
    the same order: the differences of their metrics, sample by sample, are those of a paired
    bootstrap. The model needs an attribute `metric` whose counts are sums over instances, and which
    it calls with positional arguments, each a sequence or tensor with an entry per instance.

    # Parameters

    num_samples : `int`, optional (default = `1000`)
    seed : `int`, optional (default = `0`)
        Seed of the samples and of the order of the batches.
    cuda_device : `int`, optional (default = `-1`)
    """

    def __init__(self, num_samples: int = 1000, seed: int = 0, cuda_device: int = -1) -> None:
        super().__init__(cuda_device=cuda_device)
        self._num_samples, self._seed = num_samples, seed

    @overrides(check_signature=False)
    def __call__(
        self,
        model: Model,
        data_loader: DataLoader,
        batch_weight_key: Optional[str] = None,
        metrics_output_file: Optional[Union[str, PathLike]] = None,
        predictions_output_file: Optional[Union[str, PathLike]] = None,
    ) -> Dict[str, Any]:
        """
        # Raises

        `ConfigurationError`
            If the attribute `metric` of the model is no `Metric`, or if samples are to be written
            and no instance has labels.
        """
        metric = getattr(model, "metric", None)
        if not isinstance(metric, Metric):
            raise ConfigurationError(
                "Expected a model whose attribute `metric` is a metric, found "
                f"{type(model).__name__}, which has none. Evaluate it without elmo-bootstrap."
            )
        counts = _InstanceCounts(metric)
        model.metric = counts
        # `max_tokens_sampler` shuffles batches in evaluation, too: all models get the same order.
        random.seed(self._seed)
        try:
            metrics = super().__call__(model, data_loader, batch_weight_key, metrics_output_file)
        finally:
            model.metric = metric
        if predictions_output_file is not None:
            if not counts.instances:
                raise ConfigurationError(
                    "elmo-bootstrap: expected instances with labels, found none. Evaluate a file "
                    "that has labels."
                )
            samples = self._samples(model, counts)
            content = {"num_instances": len(counts.instances), "metrics": samples}
            write_json(predictions_output_file, content, indent=None)
        return metrics

    def _samples(self, model: Any, counts: "_InstanceCounts") -> Dict[str, List[float]]:
        """The metrics of each sample."""
        values: Dict[str, List[float]] = {}
        generator = numpy.random.default_rng(self._seed)
        names, table = counts.added()
        # No table per sample: that of all instances is in the log.
        model.table_heading = ""
        try:
            for _ in range(self._num_samples):
                drawn = generator.integers(len(table), size=len(table))
                sums = numpy.bincount(drawn, minlength=len(table)) @ table
                load_metric_state(model.metric, counts.state(dict(zip(names, sums.tolist()))))
                for name, value in model.get_metrics(reset=True).items():
                    values.setdefault(name, []).append(round(float(value), 6))
        finally:
            del model.table_heading
        return values


class _InstanceCounts(Metric):
    """
    Calls a metric, and records what each instance, scored alone, adds to the numbers in its state.

    # Parameters

    metric : `Metric`
        The metric to call; its arguments are sequences or tensors, one entry per instance.
    """

    def __init__(self, metric: Metric) -> None:
        self._metric, self._single = metric, copy.deepcopy(metric)
        self._single.reset()
        self._empty = dict(_numbers(metric_state(self._single)))
        self._last: Dict[str, Any] = {}
        #: For each instance, the numbers in the state by their paths.
        self.instances: List[Dict[_Path, float]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metric, name)

    @overrides(check_signature=False)
    def __call__(self, *arguments: Any) -> None:
        self._metric(*arguments)
        for number in range(len(arguments[0])):
            self._single.reset()
            self._single(*(argument[number : number + 1] for argument in arguments))
            self.instances.append(dict(_numbers(metric_state(self._single))))

    @overrides(check_signature=False)
    def get_metric(self, reset: bool = False) -> Any:
        if reset:
            # The state after all instances, with all labels that have occurred.
            self._last = metric_state(self._metric)
        return self._metric.get_metric(reset)

    @overrides
    def reset(self) -> None:
        self._metric.reset()

    def added(self) -> Tuple[List[_Path], numpy.ndarray]:
        """The paths of the numbers, and what each instance adds: a row per instance."""
        names = [name for name, _ in _numbers(self._last)]
        rows = [
            [counts.get(name, 0.0) - self._empty.get(name, 0.0) for name in names]
            for counts in self.instances
        ]
        return names, numpy.array(rows, dtype=numpy.float64).reshape(len(rows), len(names))

    def state(self, sums: Dict[_Path, float]) -> Dict[str, Any]:
        """The state of the metric after instances that add these numbers."""
        numbers = {name: self._empty.get(name, 0.0) + added for name, added in sums.items()}
        return _with_numbers(self._last, numbers)


def _numbers(state: Any, path: _Path = ()) -> Iterator[Tuple[_Path, float]]:
    """The numbers in a state, with their paths."""
    if isinstance(state, dict):
        for name, part in state.items():
            yield from _numbers(part, (*path, name))
    elif isinstance(state, (list, tuple)):
        for number, part in enumerate(state):
            yield from _numbers(part, (*path, number))
    elif isinstance(state, (int, float)) and not isinstance(state, bool):
        yield path, float(state)
    elif isinstance(state, torch.Tensor):
        yield from _numbers(state.flatten().tolist(), path)


def _with_numbers(state: Any, numbers: Dict[_Path, float], path: _Path = ()) -> Any:
    """A state with other numbers in the same paths."""
    if isinstance(state, dict):
        return {n: _with_numbers(part, numbers, (*path, n)) for n, part in state.items()}
    if isinstance(state, (list, tuple)):
        parts = (_with_numbers(part, numbers, (*path, n)) for n, part in enumerate(state))
        return type(state)(parts)
    if isinstance(state, torch.Tensor):
        parts = _with_numbers(state.flatten().tolist(), numbers, path)
        return torch.tensor(parts, dtype=state.dtype).view_as(state)
    if path not in numbers:
        return state
    number = numbers[path]
    return int(number) if isinstance(state, int) else number
