from typing import Any, List, Sequence, Tuple

import torch

# Elements that are compared: half as many to twice as many.
_SAMPLE = 1024


class WeightState:
    """
    The state of weights when something was computed from them, to notice that they have changed.

    PyTorch counts changes in place, but not those through `data`, by a fused optimizer or of
    tensors made in inference mode. Those are noticed by about a thousand elements of each weight: a
    moving average or a new set of weights always, an assignment to a few elements perhaps not.

    # Parameters

    weights : `Sequence[torch.Tensor]`
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self._weights = list(weights)
        self._counts = self._counted()
        # A weight whose memory is free could be followed by another one at the same address.
        self._memory = [weight.detach() for weight in weights]
        self._sample = self._sampled()

    def is_current(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether these are the same weights, and unchanged."""
        return (
            len(weights) == len(self._weights)
            and all(new is old for new, old in zip(weights, self._weights))
            and self._counted() == self._counts
            and torch.equal(self._sampled(), self._sample)
        )

    def _counted(self) -> List[Tuple[Any, ...]]:
        return [
            (0 if w.is_inference() else w._version, w.data_ptr(), w.dtype, w.shape)
            for w in self._weights
        ]

    def _sampled(self) -> torch.Tensor:
        return torch.cat([w.detach().flatten()[:: w.numel() // _SAMPLE | 1] for w in self._weights])
