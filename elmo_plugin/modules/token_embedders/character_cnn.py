from typing import List, Union

import torch
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import Embedding, TokenEmbedder
from overrides import overrides
from torch.nn.functional import pad

from elmo_plugin.util.errors import check_least
from elmo_plugin.util.tensors import distinct_rows, is_exporting

_NAMESPACE = "token_characters"
# Words in one product, of similar length. Few, because all are padded to the longest one.
_GROUP = 64


@TokenEmbedder.register("elmo-character-cnn")
class CharacterCnn(TokenEmbedder):
    """
    A convolution over the characters of a word, ReLU, and the maximum over positions.

    This is the character representation of [Ma and Hovy (2016)](https://aclanthology.org/P16-1101),
    for ids of AllenNLP's `characters` indexer. Zeros pad each word on both sides. AllenNLP's
    `character_encoding` with a `cnn` does not pad, so all words shorter than its filters get the
    same zeros. Each distinct word of a batch is computed once, with others of similar length.

    # Parameters

    embedding_dim, num_filters : `int`
        Width of a character's embedding, and number of filters of each width.
    width : `Union[int, List[int]]`
        Number of characters under a filter, or a list of such numbers. An even filter reaches one
        character further to the right than to the left. A width below 1 and an empty list raise a
        `ConfigurationError`.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        embedding_dim: int = 16,
        num_filters: int = 128,
        width: Union[int, List[int]] = 3,
    ) -> None:
        super().__init__()
        self.widths = width if isinstance(width, list) else [width]
        check_least(1, width=min(self.widths, default=0))
        self.embedding = Embedding(
            embedding_dim, vocab=vocab, vocab_namespace=_NAMESPACE, padding_index=0
        )
        self.filters = torch.nn.ModuleList(
            torch.nn.Linear(width * embedding_dim, num_filters) for width in self.widths
        )
        self._output_dim = num_filters * len(self.widths)

    @overrides
    def get_output_dim(self) -> int:
        return self._output_dim

    @overrides(check_signature=False)
    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        """Maps ids `(…, num_characters)` to `(…, output_dim)`, both 0 at padding (at the end)."""
        if is_exporting():
            features = self._convolve(token_characters.flatten(0, -2))
            return features.unflatten(0, token_characters.shape[:-1])
        if not token_characters.any():
            return self.embedding.weight.new_zeros(
                *token_characters.shape[:-1], self.get_output_dim()
            )
        words, rows = distinct_rows(token_characters.flatten(0, -2))
        lengths, order = (words != 0).sum(dim=1).sort()
        groups = zip(order.split(_GROUP), lengths.split(_GROUP))
        # Shape: (num_distinct_words, output_dim), short words first
        features = torch.cat([self._convolve(words[group, : sizes[-1]]) for group, sizes in groups])
        rows = order.argsort()[rows].flatten()
        return features.index_select(0, rows).unflatten(0, token_characters.shape[:-1])

    def _convolve(self, words: torch.Tensor) -> torch.Tensor:
        """Maps ids `(num_words, num_characters)` to features `(num_words, output_dim)`."""
        is_padding = (words == 0).unsqueeze(2)
        maxima = []
        for width, filters in zip(self.widths, self.filters):
            windows = pad(words, ((width - 1) // 2, width // 2)).unfold(1, width, 1)
            # Shape: (num_words, num_characters, num_filters)
            values = filters(self.embedding(windows.contiguous()).flatten(2)).relu()
            maxima.append(values.masked_fill(is_padding, 0.0).amax(dim=1))
        return torch.cat(maxima, dim=1)
