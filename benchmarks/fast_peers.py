"""
The same models of allennlp-models, computed faster on a CPU for peer_scores.py.

Parameters, their names and initial values, and results up to rounding are those of the models; only
their speed differs, so that benchmarks of speed must not use this.
"""

from functools import partial
from typing import Callable, Dict, Tuple

import torch
from allennlp.models import Model
from allennlp.modules import FeedForward
from allennlp.modules.augmented_lstm import AugmentedLstm
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper
from allennlp.modules.stacked_alternating_lstm import StackedAlternatingLstm
from allennlp.modules.token_embedders import TokenCharactersEncoder
from allennlp.nn.util import bucket_values, get_dropout_mask
from torch.func import functional_call
from torch.nn.functional import linear, pad

from elmo_plugin.modules.recurrent.cells import HighwayLstmCell, Weights
from elmo_plugin.modules.recurrent.layer import recurrences
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.scan import LayerCall
from elmo_plugin.modules.seq2seq_encoders import BiGru
from elmo_plugin.tasks.coref.antecedents import pair_products

# Spans, the offsets of their antecedents, and the embeddings of these.
Pairs = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def accelerate(model: Model) -> None:
    """
    Replaces what takes longest in a model of allennlp-models: bidirectional GRUs, whose time in
    PyTorch's backward pass grows with the square of the text length, highway LSTMs, and the first
    layer over pairs of spans of `coref`. Character CNNs read each distinct word of a batch once.
    """
    fast = {torch.nn.GRU: FastGru, StackedAlternatingLstm: FastHighwayLstm}
    for parent in list(model.modules()):
        if isinstance(parent, TokenCharactersEncoder):
            parent.forward = partial(for_distinct_words, parent.forward)
        for name, child in parent.named_children():
            if isinstance(child, PytorchSeq2SeqWrapper) and type(child._module) in fast:
                setattr(parent, name, fast[type(child._module)](child._module))
    if hasattr(model, "_antecedent_feedforward"):
        model._antecedent_feedforward = PairNetwork(model._antecedent_feedforward._module)

        def pairs(spans: torch.Tensor, antecedents: torch.Tensor, offsets: torch.Tensor) -> Pairs:
            buckets = bucket_values(offsets, num_total_buckets=model._num_distance_buckets)
            return spans, offsets, model._distance_embedding(buckets)

        model._compute_span_pair_embeddings = pairs


def for_distinct_words(
    encode: Callable[[torch.Tensor], torch.Tensor], characters: torch.Tensor
) -> torch.Tensor:
    """From shape `(batch_size, num_tokens, num_characters)` to `(batch_size, num_tokens, dim)`."""
    words, positions = characters.flatten(0, 1).unique(dim=0, return_inverse=True)
    vectors = encode(words.unsqueeze(0)).squeeze(0)
    return vectors.index_select(0, positions).unflatten(0, characters.shape[:2])


class FastGru(torch.nn.Module):
    """A one-layer bidirectional `torch.nn.GRU`, run by `BiGru`; called like AllenNLP's wrapper."""

    def __init__(self, gru: torch.nn.GRU) -> None:
        super().__init__()
        self._module = gru
        # In a list: its own parameters are never used, and not part of the model.
        self._runner = [BiGru(gru.input_size, gru.hidden_size)]

    def forward(self, inputs: torch.Tensor, mask: torch.BoolTensor) -> torch.Tensor:
        weights = {**self._weights("forward", "l0"), **self._weights("backward", "l0_reverse")}
        (runner,) = self._runner
        return functional_call(runner.train(self.training), weights, (inputs, mask))

    def _weights(self, direction: str, suffix: str) -> Dict[str, torch.Tensor]:
        """PyTorch's gates are reset, update and candidate; its two biases of a gate are summed."""
        of_input, of_state = (
            getattr(self._module, f"bias_{part}_{suffix}").chunk(3) for part in ("ih", "hh")
        )
        reset, update, candidate = getattr(self._module, f"weight_hh_{suffix}").chunk(3)
        layer = f"{direction}_layers.0"
        return {
            f"{layer}.input.weight": getattr(self._module, f"weight_ih_{suffix}"),
            f"{layer}.recurrent.weight": torch.cat([candidate, reset, update]),
            f"{layer}.bias": torch.cat(
                [
                    of_state[2],
                    of_input[0] + of_state[0],
                    of_input[1] + of_state[1],
                    of_input[2],
                ]
            ),
        }


class FastHighwayLstm(torch.nn.Module):
    """
    A `StackedAlternatingLstm`, run by the plugin's recurrence; called like AllenNLP's wrapper.

    AllenNLP's dropout mask applies to recurrent inputs only, the plugin's to what the next layer
    reads, too. Hence its zeros are replaced by a tiny number, and outputs are divided by the mask:
    the next layer reads what it would read without dropout, and what is left of a dropped unit in a
    recurrent input is less than its rounding error. The same holds for gradients.
    """

    _DROPPED = 2.0**-60

    def __init__(self, encoder: StackedAlternatingLstm) -> None:
        super().__init__()
        self._module = encoder

    def forward(self, inputs: torch.Tensor, mask: torch.BoolTensor) -> torch.Tensor:
        packing = Packing.from_mask(mask)
        reversal = packing.reversal()
        sentences = torch.cat([torch.arange(size) for size in packing.batch_sizes]).to(mask.device)
        packed = inputs.flatten(0, 1).index_select(0, packing.forward_index)
        for number, layer in enumerate(self._module.lstm_layers):
            assert layer.use_highway and layer.go_forward == (number % 2 == 0)
            if number:
                # The layer reads in the other direction.
                packed = packed.index_select(0, reversal)
            packed = self._run(layer, packed, packing, sentences)
        index = packing.backward_index if number % 2 else packing.forward_index
        padded = packed.new_zeros(mask.numel(), packed.size(1)).index_copy(0, index, packed)
        return padded.unflatten(0, mask.shape)

    def _run(
        self, layer: AugmentedLstm, packed: torch.Tensor, packing: Packing, sentences: torch.Tensor
    ) -> torch.Tensor:
        of_input, of_state = layer.cell.input_linearity, layer.cell.state_linearity
        assert of_input.bias is None
        # The part of the input that goes around the cell has no bias.
        bias = pad(of_state.bias, (0, layer.lstm_dim))
        call = LayerCall(packed, Weights(of_input.weight, of_state.weight, bias))
        if not self.training or layer.recurrent_dropout_probability == 0.0:
            return recurrences(HighwayLstmCell(), [call], packing.batch_sizes)[0][0]
        states = packed.new_empty(len(packing.order), layer.lstm_dim)
        dropout = get_dropout_mask(layer.recurrent_dropout_probability, states)
        dropout = dropout.masked_fill(dropout == 0.0, self._DROPPED)
        ((outputs, _),) = recurrences(HighwayLstmCell(dropout), [call], packing.batch_sizes)
        return outputs / dropout[sentences]


class PairNetwork(torch.nn.Module):
    """
    A feed-forward network over `[span; antecedent; antecedent * span; distance]`, whose first layer
    is computed by `pair_products` for all pairs of spans, from which those with antecedents are
    selected.
    """

    def __init__(self, network: FeedForward) -> None:
        super().__init__()
        self._module = network

    def forward(self, pairs: Pairs) -> torch.Tensor:
        """
        # Parameters

        pairs : `Tuple[torch.Tensor, torch.Tensor, torch.Tensor]`
            Spans, shape `(1, num_spans, dim)`; by how many spans each antecedent is earlier, shape
            `(1, num_spans, num_antecedents)`; and embeddings of that distance, shape `(1,
            num_spans, num_antecedents, feature_dim)`.

        # Returns

        `torch.Tensor`
            Shape `(1, num_spans, num_antecedents, output_dim)`.
        """
        (spans,), (offsets,), distances = pairs
        first, *others = self._module._linear_layers
        widths = [spans.size(-1)] * 3 + [distances.size(-1)]
        of_span, of_antecedent, of_product, of_distance = first.weight.split(widths, dim=1)
        biases = linear(spans, of_span, first.bias)
        # Shape: (num_spans, num_spans, hidden_dim); the antecedent first
        products = pair_products(spans, spans, of_antecedent, of_product, biases)
        positions = torch.arange(len(spans), device=spans.device).unsqueeze(1)
        output = products[positions - offsets, positions] + linear(distances, of_distance)
        layers = [torch.nn.Identity(), *others]
        for layer, activation, dropout in zip(
            layers, self._module._activations, self._module._dropout
        ):
            output = dropout(activation(layer(output)))
        return output
