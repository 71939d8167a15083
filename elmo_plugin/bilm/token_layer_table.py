from typing import Dict, Sequence, Union

import torch

from elmo_plugin.bilm.character_encoder import CharacterEncoder
from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.token_embeddings import TokenEmbeddings
from elmo_plugin.modules import tuning
from elmo_plugin.util.weight_state import WeightState


class TokenLayerTable:
    """
    Keeps the token layer of the given words; other words are computed by `encoder` at each call,
    and all words once its weights have changed. `characters` converts words to the ids that
    `encoder` reads.
    """

    def __init__(
        self,
        encoder: Union[CharacterEncoder, TokenEmbeddings],
        characters: CharacterMap,
        words: Sequence[str],
    ) -> None:
        self._encoder = encoder
        self._weights = WeightState(list(encoder.parameters()))
        weight = encoder.embedding.weight
        words = list(dict.fromkeys(words))
        self._vectors = weight.new_empty(len(words), encoder.output_dim)
        self._rows: Dict[bytes, int] = {}
        with torch.no_grad():
            for first in range(0, len(words), tuning.WORDS_AT_ONCE):
                # Shape: (num_words, max_characters_per_token)
                ids = characters.batch_ids([words[first : first + tuning.WORDS_AT_ONCE]])[0]
                self._vectors[first : first + len(ids)] = encoder(ids.to(weight.device))
                for row, word_ids in enumerate(ids.numpy(), start=first):
                    self._rows[word_ids.tobytes()] = row

    def __call__(self, character_ids: torch.Tensor) -> torch.Tensor:
        """From shape `(num_words, max_characters_per_token)` to `(num_words, output_dim)`."""
        if not self._weights.is_current(list(self._encoder.parameters())):
            return self._encoder(character_ids)
        rows = torch.tensor(
            [self._rows.get(ids.tobytes(), -1) for ids in character_ids.cpu().numpy()],
            device=character_ids.device,
        )
        unknown = rows < 0
        vectors = self._vectors[rows]
        if bool(unknown.any()):
            vectors[unknown] = self._encoder(character_ids[unknown]).to(vectors.dtype)
        return vectors
