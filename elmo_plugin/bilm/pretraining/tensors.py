"""Turns plans of batches into tensors."""

from itertools import chain
from typing import Any, Dict, List, Tuple

import numpy
import torch
from torch.nn.utils.rnn import pack_sequence

from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.pretraining.batches import Row
from elmo_plugin.bilm.vocabulary_file import UNKNOWN


class BatchBuilder:
    """
    Converts rows of words into the input of a language model.

    # Parameters

    characters : `CharacterMap`
    softmax_ids : `Dict[str, int]`
        The target id of each word; all other words have that of `<UNK>`.
    bidirectional : `bool`, optional (default = `True`)
        Build the input of the backward direction too.
    """

    def __init__(
        self, characters: CharacterMap, softmax_ids: Dict[str, int], bidirectional: bool = True
    ) -> None:
        self._characters = characters
        self._softmax_ids = softmax_ids
        self._bidirectional = bidirectional

    def build(self, rows: List[Row]) -> Dict[str, Any]:
        """
        The arguments `characters`, `batch_sizes`, `forward_ids`, `forward_targets`, `backward_ids`
        and `backward_targets` of `LanguageModel.forward` for the rows of this process, longest
        first; the last two are `None` unless `bidirectional`.
        """
        directions = ("forward", "backward") if self._bidirectional else ("forward",)
        sides = [_words(rows, direction) for direction in directions]
        # Input words first, because only they need characters.
        distinct = dict.fromkeys(chain.from_iterable(inputs for inputs, _ in sides))
        characters = self._characters.sentence_ids(list(distinct)).astype(numpy.int64)
        distinct.update(dict.fromkeys(chain.from_iterable(targets for _, targets in sides)))
        unknown = self._softmax_ids[UNKNOWN]
        softmax_ids = numpy.array([self._softmax_ids.get(word, unknown) for word in distinct])
        index = dict(zip(distinct, range(len(distinct))))
        lengths = [row.length for row in rows]
        # The index of each packed position in the concatenated rows.
        order = pack_sequence(torch.arange(sum(lengths)).split(lengths))
        positions = order.data.numpy()

        def packed(words: List[str]) -> numpy.ndarray:
            return numpy.fromiter(map(index.__getitem__, words), numpy.int64, len(words))[positions]

        batch: Dict[str, Any] = {
            "characters": torch.from_numpy(characters),
            "batch_sizes": order.batch_sizes.tolist(),
            "backward_ids": None,
            "backward_targets": None,
        }
        for direction, (inputs, targets) in zip(directions, sides):
            batch[f"{direction}_ids"] = torch.from_numpy(packed(inputs))
            batch[f"{direction}_targets"] = torch.from_numpy(softmax_ids[packed(targets)])
        return batch


def _words(rows: List[Row], direction: str) -> Tuple[List[str], List[str]]:
    """The input word and the target word of each position, row after row."""
    inputs: List[str] = []
    targets: List[str] = []
    for row in rows:
        for words, start, stop in row.segments:
            if direction == "forward":
                window = words[start : stop + 1]
            else:
                # The same positions of the reversed sentence.
                window = words[len(words) - stop - 1 : len(words) - start][::-1]
            inputs += window[:-1]
            targets += window[1:]
    return inputs, targets
