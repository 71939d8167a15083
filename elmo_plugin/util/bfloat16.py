"""Whether products in bfloat16 are fast on a device."""

import logging
import platform
from functools import lru_cache

import torch

logger = logging.getLogger(__name__)


def _cpu_has_instructions() -> bool:
    """oneDNN also claims bfloat16 with AVX-512 alone, where it only converts."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        return any(getattr(torch.cpu, name)() for name in names if hasattr(torch.cpu, name))
    return torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()


#: True if the CPU has instructions for bfloat16.
CPU_HAS_BFLOAT16 = _cpu_has_instructions()


def _is_fast(device: torch.device) -> bool:
    """False on a CPU without instructions for bfloat16, where float32 is faster."""
    return device.type != "cpu" or CPU_HAS_BFLOAT16


def bfloat16_if_fast(device: torch.device) -> torch.dtype:
    """bfloat16 where its products are fast, else float32."""
    return torch.bfloat16 if _is_fast(device) else torch.float32


def autocast_bfloat16(device: torch.device, enabled: bool = True) -> torch.autocast:
    """
    `torch.autocast` to bfloat16, or to float32 if not `enabled`, or on a CPU without instructions
    for bfloat16, where float32 is faster; there the first call logs a warning.
    """
    if enabled and not _is_fast(device):
        _warn("Models and training runs for which it is set compute in float32, which is faster.")
        enabled = False
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


def warn_of_slow_bilm(device: torch.device) -> None:
    """Warns, once, that a biLM computes in bfloat16, if that is slow on its device."""
    if not _is_fast(device):
        _warn("The biLM computes in bfloat16 as asked, but is faster in float32.")


@lru_cache(maxsize=None)
def _warn(consequence: str) -> None:
    logger.warning(f"This CPU has no instructions for bfloat16. {consequence}")
