"""What a recurrent layer needs to know of its cell."""

from typing import Optional, Protocol, Tuple

import torch


class Cell(Protocol):
    """
    The arithmetic within one step of a recurrent layer, between its matrix products.

    `gates` has the shape `(num_sentences, num_blocks * dim)`, blocks side by side; the recurrence
    is added to the first `num_state_blocks` of them, what comes from the inputs to the last
    `num_input_blocks`. All else is `(num_sentences, dim)`. What goes to and comes from products
    (`inputs`, `recurrent`, `output`, `d_gates`) may be of half the precision of all else.

    `formula` says what is computed; `forward` and `backward` do the same and its gradient, in place
    and without autograd.
    """

    num_blocks: int
    num_state_blocks: int
    num_input_blocks: int

    def formula(
        self, gates: torch.Tensor, previous: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """New memory and output, from what goes into the gates and from the previous memory."""

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: Optional[torch.Tensor],
        previous: torch.Tensor,
        gates: Optional[torch.Tensor],
        memory: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """
        Fills `memory`, `output` and, if given, `gates`, with what `backward` wants of them. What
        goes into the gates is `inputs`, which may be overwritten, and `recurrent`, which is
        missing before the first step where inputs have a part in every block.
        """

    def backward(
        self,
        gates: torch.Tensor,
        previous: torch.Tensor,
        memory: torch.Tensor,
        d_output: torch.Tensor,
        d_memory: torch.Tensor,
        d_gates: torch.Tensor,
    ) -> None:
        """
        Fills `d_gates`, the gradient of what went into the gates; turns `d_memory` in place from
        that of the memory into that of the previous one. `d_output` is used up.
        """

    @property
    def projection_clip(self) -> Optional[float]:
        """Bound on the projected output; `None` for no bound."""


def add_recurrent(
    inputs: torch.Tensor,
    recurrent: Optional[torch.Tensor],
    gates: Optional[torch.Tensor],
    dtype: torch.dtype,
) -> torch.Tensor:
    """What goes into the gates, in `gates` if given."""
    # A sum of halves would be rounded to a half first.
    inputs = inputs.to(dtype)
    gates = inputs if gates is None else gates
    width = 0 if recurrent is None else recurrent.size(1)
    if width:
        torch.add(inputs[:, :width], recurrent, out=gates[:, :width])
    if gates is not inputs and width < gates.size(1):
        gates[:, width:] = inputs[:, width:]
    return gates


def stop_at_clip(gradient: torch.Tensor, clipped: torch.Tensor, clip: Optional[float]) -> None:
    """Zeroes in place the gradient of what `clamp` has changed."""
    if clip:
        # In the type of what was clipped: there the bound was rounded too.
        gradient.mul_(clipped.abs() < clip)


def through_sigmoids(gradient: torch.Tensor, gates: torch.Tensor) -> None:
    """Turns in place the gradient of `gates`, all sigmoids, into that of their arguments."""
    torch.ops.aten.sigmoid_backward.grad_input(gradient, gates, grad_input=gradient)


def through_tanh(gradient: torch.Tensor, squashed: torch.Tensor) -> None:
    """Turns in place the gradient of a hyperbolic tangent into that of its argument."""
    torch.ops.aten.tanh_backward.grad_input(gradient, squashed, grad_input=gradient)
