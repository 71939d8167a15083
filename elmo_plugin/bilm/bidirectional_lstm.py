from typing import Callable, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.projected_lstm import LstmState, ProjectedLstm
from elmo_plugin.modules.recurrent.packing import Packing

# One state per direction and layer: (forward, backward), or (forward,) alone.
BilstmState = List[Tuple[LstmState, ...]]


class BidirectionalLstm(torch.nn.Module):
    """
    The recurrent layers of a biLM: two stacks that share nothing, one reading from the front of
    a sentence and one from its end (section 3.1). A forward-only language model has one.

    # Parameters

    options : `BilmOptions`
        Number and widths of the layers, clips, whether layers above the first add their input to
        their output, and whether there is a backward direction.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        self.options = options.lstm
        self.forward_layers = _stack(options)
        self.backward_layers = _stack(options) if options.bidirectional else torch.nn.ModuleList()

    def forward(
        self, tokens: torch.Tensor, packing: Packing, state: Optional[BilstmState] = None
    ) -> Tuple[torch.Tensor, BilstmState]:
        """
        # Parameters

        tokens : `torch.Tensor`
            Shape `(batch_size, num_tokens, token_dim)`. The token layer.
        packing : `Packing`
            Which of them are real.
        state : `Optional[BilstmState]`
            State per layer before the first token, sentences in the batch's own order; zeros
            when not given.

        # Returns

        layers : `torch.Tensor`
            Shape `(n_layers, batch_size, num_tokens, 2 * output_dim)`, 0 at padding; half as wide
            without a backward direction.
        state : `BilstmState`
            State per layer after the last token, sentences in the batch's own order.
        """
        batch_size, num_tokens, _ = tokens.size()
        tokens = tokens.flatten(0, 1)
        n_layers, dim = self.options.n_layers, self.options.output_dim
        directions = [(self.forward_layers, packing.forward_index)]
        if self.backward_layers:
            directions.append((self.backward_layers, packing.backward_index))
        layers = tokens.new_zeros(n_layers, batch_size * num_tokens, len(directions) * dim)
        restore = packing.order.argsort()
        final_states = []
        for direction, (stack, index) in enumerate(directions):
            initial = state and [_reorder(pair[direction], packing.order) for pair in state]
            outputs, final = self.run_stack(stack, tokens[index], packing.batch_sizes, initial)
            for layer, output in enumerate(outputs):
                layers[layer, index, direction * dim : (direction + 1) * dim] = output
            final_states.append([_reorder(part, restore) for part in final])
        return layers.unflatten(1, (batch_size, num_tokens)), list(zip(*final_states))

    def run_stack(
        self,
        stack: torch.nn.ModuleList,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        initial: Optional[Sequence[LstmState]] = None,
        dropout: Callable[[torch.Tensor], torch.Tensor] = lambda inputs: inputs,
    ) -> Tuple[List[torch.Tensor], List[LstmState]]:
        """
        One direction.

        # Parameters

        stack : `torch.nn.ModuleList`
            `forward_layers` or `backward_layers`.
        inputs : `torch.Tensor`
            Shape `(num_packed, token_dim)`. Tokens in the order in which the direction reads them.
        batch_sizes : `Sequence[int]`
            Number of sentences at each step, never growing.
        initial : `Optional[Sequence[LstmState]]`
            State of each layer before the first step, longest sentence first; zeros when not
            given.
        dropout : `Callable[[torch.Tensor], torch.Tensor]`
            Applied to the input of each layer; what skips a layer is its input after dropout, as
            in bilm-tf.

        # Returns

        outputs : `List[torch.Tensor]`
            One per layer, shape `(num_packed, output_dim)`.
        finals : `List[LstmState]`
            State of each layer after each sentence's last token.
        """
        outputs: List[torch.Tensor] = []
        finals: List[LstmState] = []
        for number, layer in enumerate(stack):
            inputs = dropout(inputs)
            output, final = layer(inputs, batch_sizes, initial and initial[number])
            if number > 0 and self.options.use_skip_connections:
                output = output + inputs
            outputs.append(output)
            finals.append(final)
            inputs = output
        return outputs, finals


def _stack(options: BilmOptions) -> torch.nn.ModuleList:
    dims = [options.token_dim] + [options.lstm.output_dim] * (options.lstm.n_layers - 1)
    return torch.nn.ModuleList(ProjectedLstm(dim, options.lstm) for dim in dims)


def _reorder(state: LstmState, order: torch.Tensor) -> LstmState:
    return LstmState(*(part[order] for part in state))
