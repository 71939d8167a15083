from typing import Sequence

import numpy
import torch

from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.vocabulary_file import UNKNOWN
from elmo_plugin.util.errors import ConfigurationError


class WordMap(CharacterMap):
    """
    Converts words to ids for token embeddings. A word has one id in place of its character ids, so
    that the same code handles both: shape `(batch_size, num_tokens, 1)`, 0 at padding.

    # Parameters

    words : `Sequence[str]`
        The id of `words[i]` is `i + 1`; its embedding is row `i` of the weight file. All other
        words have the id of `<UNK>`, which must be in `words`.
    """

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(max_characters_per_token=1, n_characters=len(words) + 1)
        self._rows = {word: row for row, word in enumerate(words)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordMap) and self._rows == other._rows

    def _ids(self, word: str) -> numpy.ndarray:
        row = self._rows.get(word, self._rows[UNKNOWN])
        ids = numpy.array([row + 1], numpy.int32)
        ids.flags.writeable = False
        return ids


class TokenEmbeddings(torch.nn.Module):
    """
    The token layer of a biLM with one vector per word: "token embeddings" in section 3.1 of the
    paper, `embedding` in bilm-tf's weight files.
    """

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

    def reset_padding(self) -> None:
        """Sets the embedding of padding to 0: weight files have no row for it."""
        with torch.no_grad():
            self.embedding.weight[0].zero_()

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """From shape `(num_words, 1)` to `(num_words, output_dim)`."""
        return self.embedding(token_ids.squeeze(1))


def map_of(options: BilmOptions) -> CharacterMap:
    """
    The map from words to the ids that a biLM of these options reads, or a `ConfigurationError` if
    the words of its token embeddings are not known.
    """
    if options.char_cnn is not None:
        return CharacterMap.from_options(options)
    if options.words is None:
        raise ConfigurationError(
            "The biLM options have no `char_cnn`, so they need the words of the token embeddings "
            "in `vocabulary`, which is missing. Read the options from a file with vocabulary.txt "
            "beside it."
        )
    return WordMap(options.words)
