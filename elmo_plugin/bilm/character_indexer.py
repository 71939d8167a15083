from typing import Any, Dict, List, Optional

import numpy
import torch
from allennlp.data import Token, TokenIndexer, Vocabulary
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList
from overrides import overrides

from elmo_plugin.bilm.characters import map_of
from elmo_plugin.bilm.files.load import read_options


class _Ids(numpy.ndarray):
    """An array that compares like a list: AllenNLP compares text fields."""

    def __eq__(self, other: Any) -> bool:
        return numpy.array_equal(self, other)


@TokenIndexer.register("elmo-characters")
class CharacterIndexer(ELMoTokenCharactersIndexer):
    """
    Converts tokens to the character ids of a biLM, or to word ids for token embeddings. It is
    faster than AllenNLP's `elmo_characters`, and a subclass because Hotflip accepts no other.

    # Parameters

    bilm, options_file : `Optional[str]`
        The biLM, see `load_bilm`, or its options; by default as for the biLM itself.
    serialization_dir : `Optional[str]`
        Given by AllenNLP: the folder of an unpacked archive, whose weights contain the options.
    """

    def __init__(
        self,
        options_file: Optional[str] = None,
        serialization_dir: Optional[str] = None,
        bilm: Optional[str] = None,
    ) -> None:
        super().__init__()
        self._characters = map_of(read_options(options_file, serialization_dir, bilm=bilm))

    @overrides(check_signature=False)
    def tokens_to_indices(self, tokens: List[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        ids = self._characters.sentence_ids([token.ensure_text() for token in tokens])
        return {"elmo_tokens": ids.view(_Ids)}

    @overrides
    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: Dict[str, int]
    ) -> Dict[str, torch.Tensor]:
        num_tokens = padding_lengths["elmo_tokens"]
        ids = numpy.zeros((num_tokens, self._characters.max_characters_per_token), numpy.int64)
        indexed = tokens["elmo_tokens"][:num_tokens]
        if len(indexed):
            ids[: len(indexed)] = indexed
        return {"elmo_tokens": torch.from_numpy(ids)}
