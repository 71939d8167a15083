from collections import Counter
from typing import Any, Dict

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.metrics.span_counts import sum_counters


class SummedMetric(Metric):
    """
    A metric that is computed from sums over instances, those of all processes. A subclass adds to
    `self._sums` when it is called, and computes `scores`.
    """

    def __init__(self) -> None:
        self._sums: Any = Counter()

    def scores(self, sums: Counter) -> Dict[str, float]:
        """The scores from the sums over all processes."""
        raise NotImplementedError

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """The scores of the instances so far. Each process has to call this."""
        (sums,) = sum_counters([self._sums])
        scores = self.scores(sums)
        if reset:
            self.reset()
        return scores

    @overrides
    def reset(self) -> None:
        self._sums.clear()
