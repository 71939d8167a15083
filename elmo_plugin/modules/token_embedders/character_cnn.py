from typing import Any, Dict, List, Union

import torch
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import Embedding, TokenEmbedder
from overrides import overrides
from torch.nn.functional import pad

from elmo_plugin.util.errors import ConfigurationError

_NAMESPACE = "token_characters"
# Words of similar length that are computed together: few enough for a web address to cost little.
_GROUP = 64


@TokenEmbedder.register("elmo-character-cnn")
class CharacterCnn(TokenEmbedder):
    """
    Spells a word: embedded characters, filters over each of them and its neighbours, and for each
    filter the largest value in the word, if positive.

    The character representation of [Ma and Hovy (2016)](https://aclanthology.org/P16-1101), with
    zeros before and after a word, for ids of AllenNLP's `characters` indexer. AllenNLP's own
    `character_encoding` with a `cnn` has none and gives zeros for each word that is shorter than
    its filters, "of" and "2" alike. Here distinct words of a batch are computed once and padding
    costs little.

    # Parameters

    vocab : `Vocabulary`
        Given by AllenNLP. Its namespace `token_characters` says which characters there are.
    embedding_dim : `int`, optional (default = `16`)
        Width of a character.
    num_filters : `int`, optional (default = `128`)
        How many filters there are of each width: the width of a word, if there is one.
    width : `Union[int, List[int]]`, optional (default = `3`)
        How many characters a filter sees. An even number of them is one more to the right of its
        character than to the left.

    # Raises

    `ConfigurationError`
        If a width is below 1, or there is none.
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
        if min(self.widths, default=0) < 1:
            raise ConfigurationError(
                "CharacterCnn expected as `width` 1 or more characters, or a list of such numbers, "
                f"found {width}."
            )
        self.embedding = Embedding(
            embedding_dim, vocab=vocab, vocab_namespace=_NAMESPACE, padding_index=0
        )
        self.filters = torch.nn.ModuleList(
            torch.nn.Linear(width * embedding_dim, num_filters) for width in self.widths
        )
        self._output_dim = num_filters * len(self.widths)
        self.register_load_state_dict_pre_hook(_number_filters)

    @overrides
    def get_output_dim(self) -> int:
        return self._output_dim

    @overrides(check_signature=False)
    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        token_characters : `torch.Tensor`
            Shape `(batch_size, num_tokens, num_characters)`, 0 at padding, which follows what is
            real.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, output_dim)`, zero at padding.
        """
        if not token_characters.any():
            return self.embedding.weight.new_zeros(
                *token_characters.shape[:-1], self.get_output_dim()
            )
        words, rows = token_characters.flatten(0, -2).unique(dim=0, return_inverse=True)
        lengths, order = (words != 0).sum(dim=1).sort()
        groups = zip(order.split(_GROUP), lengths.split(_GROUP))
        # Shape: (number of distinct words, output_dim), short words first
        features = torch.cat([self._spell(words[group, : most[-1]]) for group, most in groups])
        rows = order.argsort()[rows].flatten()
        return features.index_select(0, rows).unflatten(0, token_characters.shape[:-1])

    def _spell(self, words: torch.Tensor) -> torch.Tensor:
        """From shape `(num_words, num_characters)` to shape `(num_words, output_dim)`."""
        is_padding = (words == 0).unsqueeze(2)
        largest = []
        for width, filters in zip(self.widths, self.filters):
            windows = pad(words, ((width - 1) // 2, width // 2)).unfold(1, width, 1)
            # Shape: (num_words, num_characters, num_filters)
            values = filters(self.embedding(windows.contiguous()).flatten(2)).relu()
            largest.append(values.masked_fill(is_padding, 0.0).amax(dim=1))
        return torch.cat(largest, dim=1)


def _number_filters(module: CharacterCnn, state: Dict[str, Any], prefix: str, *_: Any) -> None:
    """Archives written when there was one width have its filters without a number."""
    for name in ("weight", "bias"):
        if f"{prefix}filters.{name}" in state:
            state[f"{prefix}filters.0.{name}"] = state.pop(f"{prefix}filters.{name}")
