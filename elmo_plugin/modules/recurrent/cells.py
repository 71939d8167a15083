from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple, Optional, Tuple

import torch


class Cell(ABC):
    """
    One time step of a recurrent layer, between its matrix products.

    A subclass is a frozen dataclass of its settings, with `gates` and `formula`; everything else
    has a default. `gates` is the gate order of weights, biases, `formula` and compiled kernels. All
    LSTM cells begin with PyTorch's order: input, forget, candidate, output. (`bilm/files/layout.py`
    converts the other order of bilm-tf's files.)

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
        # A cell with its own formula cannot use the kernel of its base class.
        if {"gates", "formula"} & set(cls.__dict__) and "kernel" not in cls.__dict__:
            cls.kernel = None

    @abstractmethod
    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        Computes the new cell state and the output from pre-activation gates, shape
        `(num_sentences, num_gates * hidden_dim)`, and the previous cell state. The other shapes are
        `(num_sentences, hidden_dim)`. The output is the hidden state, or is projected to it.
        """

    def full_bias(self, bias: torch.Tensor) -> torch.Tensor:
        """Extends the learned bias to all gates: shape `(num_gates * hidden_dim,)`."""
        missing = len(self.gates) - self.num_bias_gates
        if not missing:
            return bias
        return torch.nn.functional.pad(bias, (0, missing * (len(bias) // self.num_bias_gates)))

    def kernel_setting(self, num_sentences: int, hidden_dim: int) -> Any:
        """A number for the kernel, or a dense float32 tensor, `(num_sentences, hidden_dim)`."""
        return 0.0


class Weights(NamedTuple):
    """The weights of a recurrent layer; `Cell` defines the order of the gates."""

    #: Shape `(num_input_gates * hidden_dim, input_dim)`.
    input: torch.Tensor
    #: Shape `(num_recurrent_gates * hidden_dim, output_dim)`.
    recurrent: torch.Tensor
    #: Shape `(num_gates * hidden_dim,)`.
    bias: torch.Tensor
    #: Shape `(output_dim, hidden_dim)`; without it, the cell's output is the hidden state.
    projection: Optional[torch.Tensor] = None

    @property
    def output_dim(self) -> int:
        """Width of the hidden state."""
        return self.recurrent.size(1)

    def hidden_dim(self, cell: Cell) -> int:
        """Width of the cell state."""
        return self.bias.numel() // len(cell.gates)

    @property
    def input_bias(self) -> torch.Tensor:
        """The bias of the gates that have inputs, shape `(num_input_gates * hidden_dim,)`."""
        return self.bias[-self.input.size(0) :]

    @property
    def recurrent_bias(self) -> Optional[torch.Tensor]:
        """The bias of gates without inputs, padded with zeros; `None` if all gates have inputs."""
        num_rest = self.bias.numel() - self.input.size(0)
        padding = (0, self.recurrent.size(0) - num_rest)
        # Shape: (num_recurrent_gates * hidden_dim,)
        return torch.nn.functional.pad(self.bias[:num_rest], padding) if num_rest else None


@dataclass(frozen=True)
class LstmCell(Cell):
    """
    An LSTM cell without peepholes, after [Sak et al. (2014)](https://arxiv.org/abs/1402.1128):

        i, f, o = sigmoid(...),  g = tanh(...)
        c = clip(f * c + i * g),  output = o * tanh(c)

    `clip` bounds the cell state, `projection_clip` the projected hidden state; `None` or 0 is no
    bound. `forget_bias` is added to the forget gate's learned bias, as in TensorFlow's `LSTMCell`.
    """

    gates: ClassVar[Tuple[str, ...]] = ("input", "forget", "candidate", "output")
    draw_order: ClassVar[Tuple[str, ...]] = ("input", "forget", "output", "candidate")
    kernel: ClassVar[Optional[str]] = "lstm"

    clip: Optional[float] = None
    projection_clip: Optional[float] = None
    forget_bias: float = 0.0

    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        i, f, g, o = gates.chunk(4, dim=1)
        cell_state = f.sigmoid() * cell_state + i.sigmoid() * g.tanh()
        if self.clip:
            cell_state = cell_state.clamp(-self.clip, self.clip)
        return cell_state, o.sigmoid() * cell_state.tanh()

    def full_bias(self, bias: torch.Tensor) -> torch.Tensor:
        if not self.forget_bias:
            return bias
        i, f, g, o = bias.chunk(4)
        return torch.cat([i, f + self.forget_bias, g, o])

    def kernel_setting(self, num_sentences: int, hidden_dim: int) -> float:
        return float(self.clip or inf)


@dataclass(frozen=True)
class HighwayLstmCell(Cell):
    """
    An LSTM cell with a highway connection around it: equations 1 to 8 of
    [He et al. (2017)](https://aclanthology.org/P17-1044).

    `linear_input` is not a gate: it is the linear transformation of the input that goes around the
    cell, without recurrence and bias. `dropout_mask`, shape `(batch_size, hidden_dim)`, longest
    sentence first, is the same for all steps.
    """

    gates: ClassVar[Tuple[str, ...]] = (
        "input", "forget", "candidate", "output", "transform", "linear_input",
    )  # fmt: skip
    draw_order: ClassVar[Tuple[str, ...]] = (
        "candidate", "input", "forget", "output", "transform", "linear_input",
    )  # fmt: skip
    num_recurrent_gates: ClassVar[int] = 5
    num_bias_gates: ClassVar[int] = 5
    kernel: ClassVar[Optional[str]] = "highway_lstm"

    dropout_mask: Optional[torch.Tensor] = None

    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        i, f, g, o, r, linear_input = gates.chunk(6, dim=1)
        cell_state = i.sigmoid() * g.tanh() + f.sigmoid() * cell_state
        output = torch.lerp(linear_input, o.sigmoid() * cell_state.tanh(), r.sigmoid())
        if self.dropout_mask is not None:
            output = output * self.dropout_mask[: len(output)]
        return cell_state, output

    def kernel_setting(self, num_sentences: int, hidden_dim: int) -> torch.Tensor:
        mask = self.dropout_mask
        if mask is None:
            return torch.ones(num_sentences, hidden_dim)
        assert mask.size(0) >= num_sentences and mask.size(1) == hidden_dim, mask.shape
        return mask.to(torch.float32).contiguous()


@dataclass(frozen=True)
class GruCell(Cell):
    """
    A gated recurrent unit ([Cho et al. 2014](https://aclanthology.org/D14-1179)) as in cuDNN and
    PyTorch: the reset gate is applied after the recurrent product.

    The candidate needs its recurrent part (first gate) and its input part (last gate) separately.
    Cell state and hidden state are the same.
    """

    gates: ClassVar[Tuple[str, ...]] = ("recurrent candidate", "reset", "update", "candidate")
    num_recurrent_gates: ClassVar[int] = 3
    num_input_gates: ClassVar[int] = 3
    kernel: ClassVar[Optional[str]] = "gru"

    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        recurrent, r, z, g = gates.chunk(4, dim=1)
        cell_state = torch.lerp((g + r.sigmoid() * recurrent).tanh(), cell_state, z.sigmoid())
        return cell_state, cell_state
