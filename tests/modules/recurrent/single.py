from typing import List, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.recurrence import recurrences
from elmo_plugin.modules.recurrent.scan import LayerCall, RecurrentState
from elmo_plugin.modules.recurrent.weights import Weights


def recurrence(
    cell: Cell,
    inputs: torch.Tensor,
    weights: Weights,
    batch_sizes: List[int],
    state: Optional[RecurrentState] = None,
) -> Tuple[torch.Tensor, RecurrentState]:
    """`recurrences` of one layer, with the parameters of `reference_recurrence`."""
    return recurrences(cell, [LayerCall(inputs, weights, state)], batch_sizes)[0]
