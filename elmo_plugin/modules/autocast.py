import logging
from functools import lru_cache

import torch

from elmo_plugin.modules.linear import products

__all__ = ["autocast_bfloat16", "warn_if_bfloat16_is_slow"]

logger = logging.getLogger(__name__)


def autocast_bfloat16(device: torch.device, enabled: bool = True) -> torch.autocast:
    """
    `torch.autocast` with products in bfloat16, for a `with` statement.

    On a CPU without instructions for bfloat16, products in bfloat16 take several times as long as
    in float32. There, they stay in float32, and the first call logs a warning.

    # Parameters

    device : `torch.device`
        Where the products are computed.
    enabled : `bool`, optional (default = `True`)
        If false, products are computed as without this function.
    """
    if enabled and _is_slow(device):
        _warn("Products for which bfloat16 is set are computed in float32.")
        enabled = False
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


def warn_if_bfloat16_is_slow(device: torch.device) -> None:
    """Logs a warning, once, if `device` is a CPU without instructions for bfloat16."""
    if _is_slow(device):
        _warn("Weights in bfloat16 take half the memory, but float32 is several times as fast.")


def _is_slow(device: torch.device) -> bool:
    return device.type == "cpu" and not products.HAS_BFLOAT16


@lru_cache(maxsize=None)
def _warn(consequence: str) -> None:
    logger.warning(f"This CPU has no instructions for bfloat16. {consequence}")
