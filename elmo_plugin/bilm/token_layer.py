"""The token layer of a biLM: the vector of each word, from its characters or from a table."""

from typing import Any, List, Optional, Tuple

import torch
from torch.nn.functional import conv1d, pad

from elmo_plugin.bilm.characters import map_of
from elmo_plugin.bilm.options import BilmOptions, CharacterTableOptions
from elmo_plugin.modules import tuning
from elmo_plugin.modules.character_convolution import can_look_up, character_maxima
from elmo_plugin.modules.packed_linear import PackedLinear
from elmo_plugin.util.tensors import is_exporting


class _TokenLayer(torch.nn.Module):
    """The common part: embeddings, all with a row for id 0, which pads sentences."""

    embedding: torch.nn.Embedding
    output_dim: int

    def reset_padding(self) -> None:
        """Sets the embeddings of id 0 to 0: weight files have no row for it."""
        with torch.no_grad():
            for module in self.children():
                if isinstance(module, torch.nn.Embedding):
                    module.weight[0].zero_()


class CharacterEncoder(_TokenLayer):
    """
    Computes the token layer of a biLM from characters (section 3.4 of the ELMo paper):
    convolutions, maximum over positions, activation, highway layers ([Kim et al.
    2016](https://arxiv.org/abs/1508.06615)) and, if the options have one, a projection.

    Windows of padding give the same result, so only one per word is computed, not up to fifty. For
    this, words are sorted by length; words of similar length share a product. On a GPU with Triton,
    and in training on a CPU with compiled kernels, `character_maxima` computes the convolutions.

    With a table of characters, the embedding of the word may come before the features of its
    characters, or take their place.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        cnn = options.char_cnn
        assert cnn is not None
        self.output_dim = options.token_dim
        self._max_characters = cnn.max_characters_per_token
        self._padding_id = map_of(options).padding_id
        self._is_table = isinstance(cnn, CharacterTableOptions)
        self._activation = torch.relu if cnn.activation == "relu" else torch.tanh
        self._widths = [width for width, _ in cnn.filters]
        self.embedding = torch.nn.Embedding(cnn.n_characters, cnn.embedding_dim, padding_idx=0)
        self.convolutions: Any = torch.nn.ModuleList(
            PackedLinear(width * cnn.embedding_dim, number) for width, number in cnn.filters
        )
        self.highways = torch.nn.ModuleList(Highway(cnn.num_filters) for _ in range(cnn.n_highway))
        self.word_embedding: Optional[torch.nn.Embedding] = None
        if isinstance(cnn, CharacterTableOptions) and cnn.words:
            self.word_embedding = torch.nn.Embedding(len(cnn.words) + 1, cnn.word_dim, 0)
        self.projection: Optional[PackedLinear] = None
        if cnn.projection:
            self.projection = PackedLinear(cnn.num_features, self.output_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises all weights as bilm-tf does (`bilm/training.py`)."""
        torch.nn.init.uniform_(self.embedding.weight, -1.0, 1.0)
        if self.word_embedding is not None:
            torch.nn.init.uniform_(self.word_embedding.weight, -1.0, 1.0)
        self.reset_padding()
        for convolution in self.convolutions:
            if self._activation is torch.relu:
                torch.nn.init.uniform_(convolution.weight, -0.05, 0.05)
            else:
                torch.nn.init.normal_(convolution.weight, 0.0, convolution.in_features**-0.5)
            torch.nn.init.zeros_(convolution.bias)
        if self.projection is not None:
            _reset_linear(self.projection)

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        From shape `(num_words, max_characters_per_token)` to `(num_words, output_dim)`. With word
        embeddings, ids of words are in the last column.
        """
        word_ids = character_ids[:, -1]
        if self.word_embedding is not None:
            character_ids = character_ids[:, :-1]
        weight = self.embedding.weight
        if not self._widths:
            return self._project(weight.new_empty(word_ids.size(0), 0), word_ids)
        if is_exporting():
            return self._project(self._exported(character_ids), word_ids)
        num_characters = (character_ids != self._padding_id).sum(dim=1)
        device = character_ids.device.type
        is_trained = torch.is_grad_enabled() and weight.requires_grad
        if (is_trained or device == "cuda") and can_look_up(character_ids, weight):
            for convolution in self.convolutions:
                convolution.drop_packed()
            if self._is_table:
                # It may have far more characters than a batch. Id 0 stays the first.
                distinct, rows = pad(character_ids, (0, 0, 1, 0)).unique(return_inverse=True)
                weight, character_ids = self.embedding(distinct), rows[1:]
            maxima = character_maxima(character_ids, num_characters, weight, self.convolutions)
            if torch.is_autocast_enabled(device):
                maxima = maxima.to(torch.get_autocast_dtype(device))
            return self._project(self._activation(maxima), word_ids)
        num_characters, order = num_characters.sort()
        character_ids = character_ids[order]
        # Shape: (num_words, num_filters)
        features = torch.cat(
            [
                self._convolve(character_ids[first:last], longest)
                for first, last, longest in _groups(num_characters.tolist())
            ]
        )
        return self._project(features, word_ids[order])[order.argsort()]

    def _project(self, features: torch.Tensor, word_ids: torch.Tensor) -> torch.Tensor:
        for highway in self.highways:
            features = highway(features)
        if self.word_embedding is not None:
            features = torch.cat([self.word_embedding(word_ids), features], dim=1)
        return features if self.projection is None else self.projection(features)

    def _exported(self, character_ids: torch.Tensor) -> torch.Tensor:
        """The features of `_convolve`, by operations that other runtimes know, from all windows."""
        # Shape: (num_words, embedding_dim, max_characters_per_token)
        embedded = self.embedding(character_ids).transpose(1, 2)
        features = []
        for width, convolution in zip(self._widths, self.convolutions):
            kernel = convolution.weight.unflatten(1, (width, -1)).transpose(1, 2)
            features.append(conv1d(embedded, kernel, convolution.bias).amax(dim=2))
        return self._activation(torch.cat(features, dim=1))

    def _convolve(self, character_ids: torch.Tensor, num_characters: int) -> torch.Tensor:
        """Features of words with at most `num_characters` ids: shape `(num_words, num_filters)`."""
        num_words = len(character_ids)
        # The widest filter needs one window that contains only padding.
        widest = min(self._max_characters, num_characters + max(self._widths))
        embedded = self.embedding(character_ids[:, :widest])
        dim = embedded.size(2)
        features: List[torch.Tensor] = []
        for width, convolution in zip(self._widths, self.convolutions):
            length = min(self._max_characters, num_characters + width)
            # Shape: (num_words, num_windows, width * embedding_dim)
            windows = embedded.view(num_words, -1)[:, : length * dim].unfold(1, width * dim, dim)
            # Shape: (num_words, num_windows, number of filters of this width)
            convolved = convolution(windows.reshape(-1, width * dim)).view(
                num_words, length - width + 1, -1
            )
            features.append(convolved.amax(dim=1))
        return self._activation(torch.cat(features, dim=1))


class Highway(torch.nn.Module):
    """
    `g * relu(W x + b) + (1 - g) * x` with `g = sigmoid(W_g x + b_g)`.

    [Srivastava et al. (2015)](https://arxiv.org/abs/1505.00387), with bilm-tf's sign: its "carry"
    gate multiplies the transformed features. AllenNLP's `Highway` is the same function without
    `PackedLinear`, which is fast on small batches.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = PackedLinear(dim, dim)
        self.gate = PackedLinear(dim, dim)
        _reset_linear(self.transform)
        _reset_linear(self.gate)
        # At the start of training, the output is close to the input.
        torch.nn.init.constant_(self.gate.bias, -2.0)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Shape `(num_words, dim)`."""
        return torch.lerp(
            inputs, torch.relu(self.transform(inputs)), torch.sigmoid(self.gate(inputs))
        )


class TokenEmbeddings(_TokenLayer):
    """A token layer with one vector per word (section 3.1), `embedding` in files of bilm-tf."""

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        self.output_dim = options.token_dim
        assert options.words is not None
        num_words = len(options.words)
        self.embedding = torch.nn.Embedding(num_words + 1, self.output_dim, padding_idx=0)
        # The bound of bilm-tf, whose matrix has no row for padding.
        bound = (6.0 / (num_words + self.output_dim)) ** 0.5
        torch.nn.init.uniform_(self.embedding.weight, -bound, bound)
        self.reset_padding()

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """From shape `(num_words, 1)` to `(num_words, output_dim)`."""
        return self.embedding(token_ids.squeeze(1))


def _reset_linear(layer: torch.nn.Linear) -> None:
    torch.nn.init.normal_(layer.weight, 0.0, layer.in_features**-0.5)
    torch.nn.init.zeros_(layer.bias)


def _groups(num_characters: List[int]) -> List[Tuple[int, int, int]]:
    """Divides words sorted by length into groups of similar length: `(first, last, longest)`."""
    groups: List[Tuple[int, int, int]] = []
    first = 0
    for last in range(1, len(num_characters) + 1):
        if (
            last == len(num_characters)
            or num_characters[last] > 1.25 * num_characters[first] + 1
            and (last - first) * num_characters[last - 1] > tuning.MIN_WINDOWS
            or (last + 1 - first) * num_characters[last] > tuning.MAX_WINDOWS
        ):
            groups.append((first, last, num_characters[last - 1]))
            first = last
    return groups
