from typing import Any, List

import torch

from elmo_plugin.modules.recurrent.bidirectional import encode_bidirectionally, initial_layer
from elmo_plugin.modules.recurrent.cells.lstm import LstmCell
from elmo_plugin.util.errors import ConfigurationError


class CoveEncoder(torch.nn.Module):
    """
    The encoder of CoVe: two bidirectional LSTM layers over the word vectors of a sentence.

    MT-LSTM, section 3 of [McCann et al. (2017)](https://arxiv.org/abs/1708.00107). Trained as the
    encoder of a translation model (`elmo-translation`), its second layer is CoVe. Initial weights
    are those of `initial_layer`. For its files see `read_cove_encoder`.

    # Parameters

    input_dim : `int`
        Width of the word vectors.
    hidden_dim : `int`, optional (default = `300`)
        Width of the hidden states of each direction.
    dropout : `float`, optional (default = `0.0`)
        Probability with which training zeroes an input of a layer.
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300, dropout: float = 0.0) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.hidden_dim = hidden_dim
        widths = (input_dim, 2 * hidden_dim)
        self.forward_layers, self.backward_layers = (
            torch.nn.ModuleList(initial_layer(LstmCell(), dim, hidden_dim) for dim in widths)
            for _ in ("forward", "backward")
        )
        self.dropout = torch.nn.Dropout(dropout)

    @property
    def output_dim(self) -> int:
        """Width of a layer's output, both directions together."""
        return 2 * self.hidden_dim

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(batch_size, num_tokens, input_dim)`. The authors use zeros for words without a
            vector.
        mask : `torch.Tensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Sentences may be empty.

        # Returns

        `torch.Tensor`
            Shape `(2, batch_size, num_tokens, 2 * hidden_dim)`. The layers, the first one first; in
            each the forward direction first, zero at padding.

        # Raises

        `ConfigurationError`
            If the vectors are not `input_dim` wide.
        """
        if vectors.size(-1) != self.input_dim:
            raise ConfigurationError(
                f"CoVe's encoder reads word vectors {self.input_dim} wide, but received vectors "
                f"{vectors.size(-1)} wide. Use the word vectors with which it was trained."
            )
        layers: List[torch.Tensor] = []
        pairs: Any = zip(self.forward_layers, self.backward_layers)
        for pair in pairs:
            vectors = encode_bidirectionally([pair], self.dropout(vectors), mask)
            layers.append(vectors)
        return torch.stack(layers)
