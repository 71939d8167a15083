"""What a recurrent layer needs to know about its cell."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, List, Optional, Tuple

import torch


class Cell(ABC):
    """
    The arithmetic of one time step of a recurrent layer, between its matrix products.

    A subclass is a frozen dataclass of its settings, one file in `cells/`. It needs `gates` and
    `formula`; everything else has a default.

    The attribute `gates` defines the gate order of weights, biases, `formula` and compiled kernels.
    All LSTM cells begin with PyTorch's order: input, forget, candidate, output. (The weight
    files of bilm-tf have another order, which `bilm/files/layout.py` converts.)

    The product with the previous hidden state is added to the first `num_recurrent_gates` gates,
    the product with the inputs to the last `num_input_gates`.
    """

    # Names of the gates, in order.
    gates: ClassVar[Tuple[str, ...]]
    num_recurrent_gates: ClassVar[int]
    num_input_gates: ClassVar[int]
    # Gates that have a learned bias, counted from the first.
    num_bias_gates: ClassVar[int]
    # The order in which the gates' initial weights are drawn; results of a seed depend on it.
    draw_order: ClassVar[Tuple[str, ...]]
    # Prefix of this cell's functions in `kernels/recurrent_cells.cpp`, `forward_scan.cpp` and
    # `backward_scan.cpp`; `None` without a kernel.
    kernel: ClassVar[Optional[str]] = None
    # Bound on the projected hidden state; `None` for no bound.
    projection_clip: Optional[float] = None

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "gates" in cls.__dict__:
            for name in ("num_recurrent_gates", "num_input_gates", "num_bias_gates"):
                if name not in cls.__dict__:
                    setattr(cls, name, len(cls.gates))
            if "draw_order" not in cls.__dict__:
                cls.draw_order = cls.gates
        # The kernel of another cell computes another formula.
        if {"gates", "formula"} & set(cls.__dict__) and "kernel" not in cls.__dict__:
            cls.kernel = None

    @abstractmethod
    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        # Parameters

        gates : `torch.Tensor`
            Shape `(num_sentences, num_gates * hidden_dim)`. Before their activation functions.
        cell_state : `torch.Tensor`
            Shape `(num_sentences, hidden_dim)`. Of the step before.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor]`
            New cell state and output, both of shape `(num_sentences, hidden_dim)`. The output is
            the hidden state, or what is projected to it.
        """

    def full_bias(self, bias: torch.Tensor) -> torch.Tensor:
        """
        The bias of all gates, shape `(num_gates * hidden_dim,)`, from the learned one, shape
        `(num_bias_gates * hidden_dim,)`.
        """
        missing = len(self.gates) - self.num_bias_gates
        if not missing:
            return bias
        return torch.nn.functional.pad(bias, (0, missing * (len(bias) // self.num_bias_gates)))

    def kernel_setting(self, num_sentences: int, hidden_dim: int) -> Any:
        """
        What the kernel takes besides arrays: a number, or a dense float32 tensor of shape
        `(num_sentences, hidden_dim)`.
        """
        return 0.0


class FormulaStep:
    """
    The time steps of any cell by its formula, differentiated by autograd one at a time.

    Results and inputs of matrix products (`inputs`, `recurrent`, `output`, `d_gates`) may be in
    bfloat16 while everything else is in float32.
    """

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: torch.Tensor,
        previous: torch.Tensor,
        gates: Optional[torch.Tensor],
        cell_state: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """
        Fills `cell_state`, `output` and, if given, `gates` with what `backward` needs.

        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_sentences, num_input_gates * hidden_dim)`. Products with the inputs.
        recurrent : `torch.Tensor`
            Shape `(num_sentences, num_recurrent_gates * hidden_dim)`. Products with the previous
            hidden state.
        previous, cell_state, output : `torch.Tensor`
            Shape `(num_sentences, hidden_dim)`. Cell state of the step before, and the results.
        gates : `Optional[torch.Tensor]`
            Shape `(num_sentences, num_gates * hidden_dim)`.
        """
        if gates is None:
            gates = previous.new_empty(len(previous), len(self._cell.gates) * previous.size(1))
        first_input = gates.size(1) - inputs.size(1)
        gates[:, :first_input] = 0.0
        gates[:, first_input:] = inputs
        gates[:, : recurrent.size(1)] += recurrent
        new_cell_state, new_output = self._cell.formula(gates, previous)
        cell_state.copy_(new_cell_state)
        output.copy_(new_output)

    def backward(
        self,
        gates: torch.Tensor,
        previous: torch.Tensor,
        cell_state: torch.Tensor,
        d_output: torch.Tensor,
        d_cell_state: torch.Tensor,
        d_gates: torch.Tensor,
    ) -> None:
        """
        Fills `d_gates` and turns `d_cell_state` in place from the gradient of the cell state into
        that of the previous one. May overwrite `d_output`.

        # Parameters

        gates, d_gates : `torch.Tensor`
            Shape `(num_sentences, num_gates * hidden_dim)`.
        previous, cell_state, d_output, d_cell_state : `torch.Tensor`
            Shape `(num_sentences, hidden_dim)`.
        """
        arguments: List[torch.Tensor] = [gates.detach(), previous.detach()]
        with torch.enable_grad():
            for argument in arguments:
                argument.requires_grad_()
            results = self._cell.formula(*arguments)
        gradients = torch.autograd.grad(results, arguments, (d_cell_state, d_output))
        d_gates.copy_(gradients[0])
        d_cell_state.copy_(gradients[1])
