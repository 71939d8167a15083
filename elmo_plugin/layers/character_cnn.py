import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.modules.token_embedders import Embedding, TokenEmbedder
from overrides import overrides
from torch.nn.functional import pad

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
        Width of a word.
    width : `int`, optional (default = `3`)
        How many characters a filter sees.

    # Raises

    `ConfigurationError`
        If `width` is not an odd number: no character would be in the middle.
    """

    def __init__(
        self, vocab: Vocabulary, embedding_dim: int = 16, num_filters: int = 128, width: int = 3
    ) -> None:
        super().__init__()
        if width < 1 or width % 2 == 0:
            raise ConfigurationError(
                "CharacterCnn centres a filter on each character: `width` is 1, 3, 5, ... and "
                f"not {width}."
            )
        self.embedding = Embedding(
            embedding_dim, vocab=vocab, vocab_namespace=_NAMESPACE, padding_index=0
        )
        self.filters = torch.nn.Linear(width * embedding_dim, num_filters)
        self.width = width

    @overrides
    def get_output_dim(self) -> int:
        return self.filters.out_features

    @overrides(check_signature=False)
    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        token_characters : `torch.Tensor`
            Shape `(batch_size, num_tokens, num_characters)`, 0 at padding, which follows what is
            real.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, num_filters)`, zero at padding.
        """
        if not token_characters.any():
            return self.filters.weight.new_zeros(
                *token_characters.shape[:-1], self.get_output_dim()
            )
        words, rows = token_characters.flatten(0, -2).unique(dim=0, return_inverse=True)
        lengths, order = (words != 0).sum(dim=1).sort()
        groups = zip(order.split(_GROUP), lengths.split(_GROUP))
        # Shape: (number of distinct words, num_filters), short words first
        features = torch.cat([self._spell(words[group, : most[-1]]) for group, most in groups])
        rows = order.argsort()[rows].flatten()
        return features.index_select(0, rows).unflatten(0, token_characters.shape[:-1])

    def _spell(self, words: torch.Tensor) -> torch.Tensor:
        """From shape `(num_words, num_characters)` to shape `(num_words, num_filters)`."""
        windows = pad(words, (self.width // 2, self.width // 2)).unfold(1, self.width, 1)
        # Shape: (num_words, num_characters, num_filters)
        values = self.filters(self.embedding(windows.contiguous()).flatten(2)).relu()
        return values.masked_fill((words == 0).unsqueeze(2), 0.0).amax(dim=1)
