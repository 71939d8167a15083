import random
from typing import Any, Dict

import numpy
import torch


def random_states(device: torch.device) -> Dict[str, Any]:
    """
    The states of the random generators of Python, NumPy, PyTorch and, if `device` is a GPU, of that
    GPU. `torch.load` can read them with `weights_only`.
    """
    # `Any`, because the annotation of `get_state` also allows a dictionary.
    of_numpy: Any = numpy.random.get_state()
    name, keys, *rest = of_numpy
    states = {
        "python": random.getstate(),
        "numpy": (name, keys.tolist(), *rest),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: Dict[str, Any], device: torch.device) -> None:
    """Restores `random_states`, the state of a GPU if `device` is one."""
    random.setstate(states["python"])
    numpy.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
