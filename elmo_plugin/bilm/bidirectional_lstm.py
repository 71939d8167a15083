from typing import List, Optional, Tuple

import torch

from elmo_plugin.bilm.options import LstmOptions
from elmo_plugin.bilm.projected_lstm import LstmState, ProjectedLstm
from elmo_plugin.layers import Packing

# One (forward, backward) pair of states per layer.
BilstmState = List[Tuple[LstmState, LstmState]]


class BidirectionalLstm(torch.nn.Module):
    """
    The recurrent layers of a biLM: two stacks that share nothing, one reading from the front of
    a sentence and one from its end (section 3.1).

    # Parameters

    options : `LstmOptions`
        Number and widths of the layers, clips, and whether layers above the first add their
        input to their output.
    """

    def __init__(self, options: LstmOptions) -> None:
        super().__init__()
        self.options = options
        dim = options.projection_dim
        self.forward_layers = torch.nn.ModuleList(
            ProjectedLstm(dim, options) for _ in range(options.n_layers)
        )
        self.backward_layers = torch.nn.ModuleList(
            ProjectedLstm(dim, options) for _ in range(options.n_layers)
        )

    def forward(
        self, tokens: torch.Tensor, packing: Packing, state: Optional[BilstmState] = None
    ) -> Tuple[torch.Tensor, BilstmState]:
        """
        # Parameters

        tokens : `torch.Tensor`
            Shape `(batch_size, num_tokens, projection_dim)`. The token layer.
        packing : `Packing`
            Which of them are real.
        state : `Optional[BilstmState]`
            State per layer before the first token, sentences in the batch's own order; zeros
            when not given.

        # Returns

        layers : `torch.Tensor`
            Shape `(n_layers, batch_size, num_tokens, 2 * projection_dim)`, 0 at padding.
        state : `BilstmState`
            State per layer after the last token, sentences in the batch's own order.
        """
        batch_size, num_tokens, dim = tokens.size()
        tokens = tokens.reshape(-1, dim)
        n_layers = self.options.n_layers
        layers = tokens.new_zeros(n_layers, batch_size * num_tokens, 2 * dim)
        final_states = []
        directions = (
            (self.forward_layers, packing.forward_index, slice(0, dim)),
            (self.backward_layers, packing.backward_index, slice(dim, 2 * dim)),
        )
        for direction, (stack, index, columns) in enumerate(directions):
            initial = [
                pair[direction] if pair is not None else None
                for pair in (state or [None] * n_layers)
            ]
            outputs, final = self._run_stack(stack, tokens[index], packing, initial)
            for layer, output in enumerate(outputs):
                layers[layer, index, columns] = output
            final_states.append(final)
        return layers.view(n_layers, batch_size, num_tokens, 2 * dim), list(zip(*final_states))

    def _run_stack(
        self,
        stack: torch.nn.ModuleList,
        inputs: torch.Tensor,
        packing: Packing,
        initial: List[Optional[LstmState]],
    ) -> Tuple[List[torch.Tensor], List[LstmState]]:
        restore = packing.order.argsort()
        outputs: List[torch.Tensor] = []
        finals: List[LstmState] = []
        for number, (layer, state) in enumerate(zip(stack, initial)):
            if state is not None:
                state = LstmState(*(part[packing.order] for part in state))
            output, final = layer(inputs, packing.batch_sizes, state)
            if number > 0 and self.options.use_skip_connections:
                output = output + inputs
            outputs.append(output)
            finals.append(LstmState(*(part[restore] for part in final)))
            inputs = output
        return outputs, finals
