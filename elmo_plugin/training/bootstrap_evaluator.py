import copy
import random
from os import PathLike
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
import torch
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator, SimpleEvaluator
from allennlp.models import Model
from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.util.atomic_write import write_json
from elmo_plugin.util.bootstrap import sums_of_samples
from elmo_plugin.util.errors import ConfigurationError

_Counts = Dict[Tuple[str, Any], float]


@Evaluator.register("elmo-bootstrap")
class BootstrapEvaluator(SimpleEvaluator):
    """
    AllenNLP's evaluator, but writes metrics of bootstrap samples of the instances, not predictions:

        allennlp evaluate ARCHIVE TEST --predictions-output-file samples.json \\
            -o '{"evaluation": {"type": "elmo-bootstrap"}}'

    Two models get the same samples if their data loaders read the same text in the same order: the
    differences of their metrics per sample are a paired bootstrap. `seed` also orders the batches.

    The model needs an attribute `metric`, which it calls with positional arguments: sequences or
    tensors with an entry per instance. Its counts are sums over instances: numbers, tensors or
    dictionaries of numbers among its attributes.

    If the model has a `group_key`, the instances whose `metadata` agree in it depend on each other:
    `group_metrics` in the file are the metrics of samples of whole groups. These are the same for
    any order of the batches. They are left out if there is a single group, or no larger one.
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
        """Writes the metrics of samples to `predictions_output_file`."""
        metric: Any = model.metric
        counts = _InstanceCounts(metric)
        model.metric = counts
        # `max_tokens_sampler` shuffles batches in evaluation, too: all models get the same order.
        random.seed(self._seed)
        hook = model.register_forward_pre_hook(counts.read_groups, with_kwargs=True)
        try:
            metrics = super().__call__(model, data_loader, batch_weight_key, metrics_output_file)
        finally:
            hook.remove()
            model.metric = metric
        if predictions_output_file is not None:
            if not counts.instances:
                raise ConfigurationError(
                    "elmo-bootstrap: expected instances with labels, found none. Evaluate a file "
                    "that has labels."
                )
            samples: Any = self._samples(model, counts)
            content = {"num_instances": len(counts.instances), "metrics": samples}
            if 1 < (num_groups := len(set(counts.groups))) < len(counts.groups):
                samples = self._samples(model, counts, counts.groups)
                content.update(num_groups=num_groups, group_metrics=samples)
            write_json(predictions_output_file, content, indent=None)
        return metrics

    def _samples(
        self, model: Any, counts: "_InstanceCounts", groups: Sequence[str] = ()
    ) -> Dict[str, List[float]]:
        values: Dict[str, List[float]] = {}
        # No table per sample: the log has the table of all instances.
        model.table_heading = ""
        try:
            for attributes in counts.of_samples(self._num_samples, self._seed, groups):
                vars(model.metric).update(attributes)
                for name, value in model.get_metrics(reset=True).items():
                    values.setdefault(name, []).append(round(float(value), 6))
        finally:
            del model.table_heading
        return values


class _InstanceCounts(Metric):
    """Calls a metric, and records the counts of each instance, scored alone."""

    def __init__(self, metric: Metric) -> None:
        self._metric, self._single = metric, copy.deepcopy(metric)
        self._single.reset()
        self._empty = _counts(vars(self._single))
        self._whole: Dict[str, Any] = {}
        #: The counts of each instance.
        self.instances: List[_Counts] = []
        #: The group of each instance: the same for all if the model has no `group_key`.
        self.groups: List[str] = []

    def read_groups(self, model: Model, _: Any, batch: Dict[str, Any]) -> None:
        """A hook before `forward`."""
        key = getattr(model, "group_key", "")
        self.groups.extend(str(each.get(key)) for each in batch.get("metadata", ()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metric, name)

    @overrides(check_signature=False)
    def __call__(self, *arguments: Any) -> None:
        self._metric(*arguments)
        for number in range(len(arguments[0])):
            self._single.reset()
            self._single(*(argument[number : number + 1] for argument in arguments))
            self.instances.append(_counts(vars(self._single)))

    @overrides(check_signature=False)
    def get_metric(self, reset: bool = False) -> Any:
        if reset:
            # After all instances, with all labels that have occurred.
            self._whole = copy.deepcopy(vars(self._metric))
        return self._metric.get_metric(reset)

    @overrides
    def reset(self) -> None:
        self._metric.reset()

    def of_samples(
        self, num_samples: int, seed: int, groups: Sequence[str] = ()
    ) -> Iterator[Dict[str, Any]]:
        """The metric's attributes after each bootstrap sample, of whole `groups` if given."""
        places = list(_counts(self._whole))
        # Shape: (num_places,)
        empty = numpy.array([self._empty.get(place, 0.0) for place in places])
        rows = [[counts.get(place, 0.0) for place in places] for counts in self.instances]
        # Shape: (num_instances, num_places)
        added = numpy.array(rows).reshape(len(rows), len(places)) - empty
        if groups:
            # Sorted by name.
            names, numbers = numpy.unique(numpy.array(groups, object), return_inverse=True)
            of_instances, added = added, numpy.zeros((len(names), len(places)))
            numpy.add.at(added, numbers, of_instances)
        for sums in sums_of_samples(added, num_samples, seed):
            attributes = copy.deepcopy(self._whole)
            for (name, key), count in zip(places, (empty + sums).tolist()):
                value = attributes[name]
                if isinstance(value, dict):
                    value[key] = count
                elif isinstance(value, torch.Tensor):
                    value.view(-1)[key] = count
                else:
                    attributes[name] = count
            yield attributes


def _counts(attributes: Dict[str, Any]) -> _Counts:
    """Numbers among attributes, also in dictionaries and tensors, by attribute and key in it."""
    counts = {}
    for name, value in attributes.items():
        parts = value.flatten().tolist() if isinstance(value, torch.Tensor) else [value]
        for key, part in value.items() if isinstance(value, dict) else enumerate(parts):
            if isinstance(part, (int, float)):
                counts[name, key] = float(part)
    return counts
