from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_plugin.bilm.options import LstmOptions
from elmo_plugin.bilm.recurrence import Clips, LstmRecurrence
from elmo_plugin.layers import PackedLinear

# Input gates computed in one product: large enough for the product to run at full speed, small
# enough to stay in cache until its steps have read it (16 MB in float32).
_MAX_GATES = 4 * 1024 * 1024


class LstmState(NamedTuple):
    """
    What one direction of one layer remembers.

    # Parameters

    hidden : `torch.Tensor`
        Shape `(batch_size, output_dim)`.
    cell : `torch.Tensor`
        Shape `(batch_size, dim)`.
    """

    hidden: torch.Tensor
    cell: torch.Tensor


class ProjectedLstm(torch.nn.Module):
    """
    One direction of one layer of a biLM: an LSTM whose cell is clipped and whose output is
    projected and clipped.

    [Sak et al. (2014)](https://arxiv.org/abs/1402.1128) without peepholes; TensorFlow's
    `LSTMCell` as bilm-tf uses it, whose hidden 1 on the forget bias is added here too.

        i, f, o = sigmoid(W x + U h + b),  g = tanh(W x + U h + b)
        c = clip(f * c + i * g),  h = clip(P (o * tanh(c)))

    Without a projection, `h = o * tanh(c)`. What has to learn goes through `LstmRecurrence`, which
    is the same function with its own backward pass.

    # Parameters

    input_dim : `int`
        Width of the input.
    options : `LstmOptions`
        Numbers of cells and outputs, and the clips.
    """

    def __init__(self, input_dim: int, options: LstmOptions) -> None:
        super().__init__()
        self.options = options
        num_gates = 4 * options.dim
        # The gates stand in the order i, f, o, g: one sigmoid for the first three.
        self.input = PackedLinear(input_dim, num_gates, bias=False)
        self.recurrent = PackedLinear(options.output_dim, num_gates, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(num_gates))
        self.projection: Optional[PackedLinear] = None
        if options.projection_dim is not None:
            self.projection = PackedLinear(options.dim, options.projection_dim, bias=False)
        # The hidden 1 stays out of `bias`, so that a weight file is written back bit for bit.
        forget_bias = torch.zeros(num_gates)
        forget_bias[options.dim : 2 * options.dim] = 1.0
        self.register_buffer("forget_bias", forget_bias, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as TensorFlow's default does: uniform, after Glorot and Bengio."""
        fan = self.input.in_features + self.recurrent.in_features + self.bias.numel()
        bound = (6.0 / fan) ** 0.5
        torch.nn.init.uniform_(self.input.weight, -bound, bound)
        torch.nn.init.uniform_(self.recurrent.weight, -bound, bound)
        if self.projection is not None:
            torch.nn.init.xavier_uniform_(self.projection.weight)
        torch.nn.init.zeros_(self.bias)

    def forward(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], state: Optional[LstmState] = None
    ) -> Tuple[torch.Tensor, LstmState]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_packed, input_dim)`. Tokens in the order of a `Packing`.
        batch_sizes : `Sequence[int]`
            Number of sentences at each step, never growing.
        state : `Optional[LstmState]`
            State before the first step, sentences in packed order; zeros when not given.

        # Returns

        outputs : `torch.Tensor`
            Shape `(num_packed, output_dim)`.
        state : `LstmState`
            State after each sentence's last token.
        """
        hidden, cell = state or self._zero_state(batch_sizes[0])
        bias = self.bias + self.forget_bias
        if torch.is_grad_enabled() and (bias.requires_grad or inputs.requires_grad):
            return self._learn(inputs, batch_sizes, hidden, cell, bias)
        outputs: List[torch.Tensor] = []
        ended: List[LstmState] = []
        start = 0
        for sizes in self._chunks(batch_sizes):
            num_packed = sum(sizes)
            # Shape: (num_packed of this chunk, 4 * dim)
            input_gates = self.input(inputs[start : start + num_packed], plus=bias)
            start += num_packed
            for size, step_gates in zip(sizes, input_gates.split(sizes)):
                if size < len(hidden):
                    ended.append(LstmState(hidden[size:], cell[size:]))
                    hidden, cell = hidden[:size], cell[:size]
                hidden, cell = self._step(step_gates, hidden, cell)
                outputs.append(hidden)
        ended.append(LstmState(hidden, cell))
        # Shorter sentences ended first but stand last.
        hiddens, cells = zip(*reversed(ended))
        return torch.cat(outputs), LstmState(torch.cat(hiddens), torch.cat(cells))

    def _learn(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        hidden: torch.Tensor,
        cell: torch.Tensor,
        bias: torch.Tensor,
    ) -> Tuple[torch.Tensor, LstmState]:
        outputs, hidden, cell = LstmRecurrence.apply(
            inputs,
            hidden,
            cell,
            self.input.weight_to_learn(),
            self.recurrent.weight_to_learn(),
            bias,
            None if self.projection is None else self.projection.weight_to_learn(),
            batch_sizes,
            Clips(self.options.cell_clip, self.options.proj_clip),
        )
        return outputs, LstmState(hidden, cell)

    def _step(
        self, input_gates: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        dim, options = self.options.dim, self.options
        # Shape: (num_sentences, 4 * dim)
        gates = self.recurrent(hidden, plus=input_gates)
        i, f, o = torch.sigmoid(gates[:, : 3 * dim]).chunk(3, dim=1)
        g = torch.tanh(gates[:, 3 * dim :])
        cell = torch.addcmul(f * cell, i, g)
        if options.cell_clip:
            cell = cell.clamp(-options.cell_clip, options.cell_clip)
        hidden = o * torch.tanh(cell)
        if self.projection is not None:
            hidden = self.projection(hidden)
        if self.projection is not None and options.proj_clip:
            hidden = hidden.clamp(-options.proj_clip, options.proj_clip)
        return hidden, cell

    def _zero_state(self, batch_size: int) -> LstmState:
        return LstmState(
            self.bias.new_zeros(batch_size, self.options.output_dim),
            self.bias.new_zeros(batch_size, self.options.dim),
        )

    def _chunks(self, batch_sizes: Sequence[int]) -> List[List[int]]:
        """Groups steps so that their input gates fill about `_MAX_GATES` numbers."""
        most = max(1, _MAX_GATES // (4 * self.options.dim))
        chunks: List[List[int]] = [[]]
        filled = 0
        for size in batch_sizes:
            if chunks[-1] and filled + size > most:
                chunks.append([])
                filled = 0
            chunks[-1].append(size)
            filled += size
        return chunks
