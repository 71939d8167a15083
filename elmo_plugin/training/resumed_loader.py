from itertools import islice
from typing import Callable, Iterator

from allennlp.data import DataLoader, TensorDict


class ResumedLoader:
    """
    Iterates over a loader, and calls `resume` after `num_batches`, before it requests the next
    batch, so that a prefetching loader draws from the restored random states.
    """

    def __init__(self, loader: DataLoader, num_batches: int, resume: Callable[[], None]) -> None:
        self._loader, self._num_batches, self._resume = loader, num_batches, resume

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[TensorDict]:
        batches = iter(self._loader)
        yield from islice(batches, self._num_batches)
        self._resume()
        yield from batches
