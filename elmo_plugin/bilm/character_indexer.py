from typing import Dict, List, Optional

import numpy
import torch
from allennlp.data import Token, TokenIndexer, Vocabulary
from allennlp.data.token_indexers.token_indexer import IndexedTokenList
from overrides import overrides

from elmo_plugin.bilm.io.pretrained import read_options
from elmo_plugin.bilm.token_embeddings import map_of


@TokenIndexer.register("elmo-characters")
class CharacterIndexer(TokenIndexer):
    """
    Converts tokens to the character ids of a biLM, or to word ids for token embeddings.

    For the published biLMs the ids are those of AllenNLP's `elmo_characters`, computed faster.

    # Parameters

    options_file : `Optional[str]`, optional (default = `None`)
        Options of the biLM; default `ELMO_OPTIONS`, as for the biLM itself.
    serialization_dir : `Optional[str]`
        Given by AllenNLP: the folder of an unpacked archive, which contains the options.

    # Raises

    `ConfigurationError`
        If the options file cannot be read.
    """

    def __init__(
        self, options_file: Optional[str] = None, serialization_dir: Optional[str] = None
    ) -> None:
        super().__init__()
        self._characters = map_of(read_options(options_file, serialization_dir))

    @overrides
    def count_vocab_items(self, token: Token, counter: Dict[str, Dict[str, int]]) -> None:
        pass

    @overrides
    def get_empty_token_list(self) -> IndexedTokenList:
        return {"elmo_tokens": []}

    @overrides
    def tokens_to_indices(self, tokens: List[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        return {"elmo_tokens": self._characters.sentence_ids([t.ensure_text() for t in tokens])}

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
