"""Distinct rows, changes of weights, and what `torch.export` and `torch.compile` want otherwise."""

import sys
from functools import lru_cache, wraps
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, cast

import torch

# Elements of each dimension that are compared: at least as many, fewer than twice as many.
_SAMPLE = 16
Function = TypeVar("Function", bound=Callable)
_disabled = lru_cache(maxsize=None)(torch.compiler.disable)


def uncompiled(function: Function) -> Function:
    """`torch.compiler.disable`, which as a decorator would import the compiler: seconds."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            run = _disabled(function) if "torch._dynamo" in sys.modules else function
            return run(*arguments, **named)
        finally:
            # Because of this block, the compiler gives up this function once and for all.
            pass

    return cast(Function, call)


#: True while `torch.export` records a model: sizes are then symbols, and numbers unknown. PyTorch
#: 2.6 lacks the function.
is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", bool)


def distinct_rows(rows: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    `torch.unique(rows, dim=0, return_inverse=True)` for integers. A GPU sorts hashes instead of
    rows, which is much faster and gives another order.
    """
    found = by_hash(rows) if rows.device.type == "cuda" and len(rows) else None
    return found or torch.unique(rows, dim=0, return_inverse=True)


def by_hash(rows: torch.Tensor) -> Optional[Tuple[torch.Tensor, torch.Tensor]]:
    """`distinct_rows` for at least one row; `None` if different rows have the same hash."""
    generator = torch.Generator().manual_seed(0)
    # Odd, so that a change of one number always changes the hash.
    factors = torch.randint(
        -(2**62), 2**62, (rows.size(1),), generator=generator, device="cpu"
    ).mul_(2)
    # Integer arithmetic modulo 2 ** 64.
    hashes = (rows * (factors + 1).to(rows.device)).sum(dim=1)
    distinct_hashes, places = torch.unique(hashes, return_inverse=True)
    numbers = torch.arange(len(rows), device=rows.device)
    distinct = rows[numbers.new_empty(len(distinct_hashes)).scatter_(0, places, numbers)]
    return (distinct, places) if bool((distinct[places] == rows).all()) else None


def load_scalars(module: torch.nn.Module, state: Dict[str, Any], prefix: str, *_: Any) -> None:
    """A hook that loads the scalars of old archives as shape `(1,)`, because FSDP shards none."""
    names = [prefix + name for name in module._parameters if prefix + name in state]
    state.update({name: torch.atleast_1d(state[name]) for name in names})


class WeightState:
    """
    Notices that weights have changed since something was computed from them. PyTorch counts changes
    in place, but not those through `data`, by a fused optimizer or of tensors made in inference
    mode. Comparing 256 to 961 elements of each matrix shows a moving average or a new set of
    weights, but perhaps not an assignment to single rows.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self._weights = list(weights)
        self._counts = self._counted()
        # Views, which also keep the memory: another weight could have its address otherwise.
        self._views = [_sample(weight.detach()) for weight in weights]
        self._samples = [view.clone() for view in self._views]

    def is_current(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether these are the same weights, and unchanged."""
        return (
            len(weights) == len(self._weights)
            and all(new is old for new, old in zip(weights, self._weights))
            and self._counted() == self._counts
            and all(map(torch.equal, self._views, self._samples))
        )

    def __reduce__(self) -> Tuple[Any, ...]:
        # A copy holds the copied weights, or none if they have changed: then it is never current.
        return WeightState, (self._weights if self.is_current(self._weights) else [],)

    def _counted(self) -> List[Tuple[Any, ...]]:
        return [
            (0 if w.is_inference() else w._version, w.data_ptr(), w.dtype, w.shape)
            for w in self._weights
        ]


def _sample(weight: torch.Tensor) -> torch.Tensor:
    return weight[tuple(slice(None, None, max(1, size // _SAMPLE)) for size in weight.shape)]
