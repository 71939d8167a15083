import random
from typing import Any, Dict

import numpy
import torch

__all__ = ["random_states", "set_random_states"]


def random_states(device: torch.device) -> Dict[str, Any]:
    """
    The states of the generators that training draws from: Python's, NumPy's, PyTorch's and, if
    `device` is a GPU, that GPU's. Holds only what `torch.load` reads with `weights_only`.
    """
    name, keys, *rest = numpy.random.get_state()
    states = {
        "python": random.getstate(),
        "numpy": (name, keys.tolist(), *rest),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: Dict[str, Any], device: torch.device) -> None:
    """Undoes `random_states`. The state of a GPU is left out if `device` is none."""
    random.setstate(states["python"])
    numpy.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
