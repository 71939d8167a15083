"""Kernels for GPUs, by Triton. Each launch sets `enable_fp_fusion`: 3.10 changes its default."""

import logging
import os
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import torch

from elmo_plugin.modules.kernels.compiled import SWITCH

logger = logging.getLogger(__name__)


@lru_cache(maxsize=None)
def has_triton(device: torch.device) -> bool:
    """
    True if Triton can compile kernels for this device, and `ELMO_COMPILED_KERNELS` is not `0`.
    Triton comes with PyTorch for CUDA, and needs a C compiler and Python's headers. False for AMD's
    GPUs, on which nobody has tried the kernels.
    """
    if os.environ.get(SWITCH) == "0" or find_spec("triton") is None or torch.version.hip:
        return False
    try:
        # Old GPUs lack bfloat16.
        values = torch.zeros(1, dtype=torch.bfloat16, device=device)
        with torch.cuda.device_of(values):
            kernels("softmax_rows").add_one[(1,)](values, enable_fp_fusion=True)
        return values.item() == 1.0
    # A missing compiler or header, or whatever Triton says of a GPU that it does not know.
    except Exception as error:
        logger.info(f"Running without kernels for GPUs, more slowly: {error}")
        return False


def kernels(name: str) -> ModuleType:
    """A module of this folder. It imports Triton, which an installation without a GPU may lack."""
    return import_module(f"{__name__}.{name}")
