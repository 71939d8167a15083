from collections import Counter
from typing import Any, Dict

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.util.distributed import gathered


class SummedMetric(Metric):
    """
    A metric that is computed from sums over instances, those of all processes. A subclass adds to
    `self._sums` when it is called, and computes `scores`.
    """

    def __init__(self) -> None:
        self._sums: Any = Counter()

    def sums(self) -> Counter:
        """The sums over all processes, each of which has to call this."""
        # Processes may have different keys, so that their sums cannot be added as one tensor.
        of_processes = gathered(self._sums)
        if len(of_processes) == 1:
            # A sum would lose the keys whose count is 0.
            return of_processes[0]
        return sum(of_processes, Counter())

    def scores(self, sums: Counter) -> Dict[str, float]:
        """The scores from the sums over all processes."""
        raise NotImplementedError

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """The scores of the instances so far. Each process has to call this."""
        scores = self.scores(self.sums())
        if reset:
            self.reset()
        return scores

    @overrides
    def reset(self) -> None:
        self._sums.clear()
