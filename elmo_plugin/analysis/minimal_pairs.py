from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Tuple

from elmo_plugin.analysis.surprisal import DIRECTIONS, Scorer, SentenceScore
from elmo_plugin.corpora.minimal_pairs import MinimalPair


@dataclass(frozen=True)
class JudgedPair:
    """
    A pair and the scores of its sentences.

    # Parameters

    pair : `MinimalPair`
    good, bad : `SentenceScore`
    """

    pair: MinimalPair
    good: SentenceScore
    bad: SentenceScore

    def is_right(self, direction: str) -> bool:
        """Whether the good sentence is the more likely one, as BLiMP counts it: a tie is wrong."""
        return self.good.surprisal(direction) < self.bad.surprisal(direction)


def judge(
    scorer: Scorer, pairs: Iterable[MinimalPair], batch_size: int = 64
) -> Iterator[JudgedPair]:
    """
    Scores both sentences of each pair, in order. At most `8 * batch_size` pairs are in memory.
    """
    waiting: List[MinimalPair] = []

    def sentences() -> Iterator[Tuple[str, ...]]:
        for pair in pairs:
            waiting.append(pair)
            yield pair.good
            yield pair.bad

    scores = scorer.score(sentences(), batch_size)
    for good, bad in zip(scores, scores):
        yield JudgedPair(waiting.pop(0), good, bad)


class PairAccuracy:
    """
    Counts the pairs whose good sentence is the more likely one: of each set, each phenomenon, each
    field, and of all pairs.
    """

    def __init__(self) -> None:
        self._num_pairs: Dict[Tuple[str, str], int] = {}
        self._num_right: Dict[Tuple[str, str, str], int] = {}

    def add(self, judged: JudgedPair) -> None:
        pair = judged.pair
        groups = [
            ("set", pair.uid),
            ("phenomenon", pair.phenomenon),
            ("field", pair.field),
            ("all", "all"),
        ]
        for kind, name in groups:
            if name:
                self._num_pairs[kind, name] = self._num_pairs.get((kind, name), 0) + 1
                for direction in DIRECTIONS:
                    key = (kind, name, direction)
                    is_right = judged.is_right(direction)
                    self._num_right[key] = self._num_right.get(key, 0) + is_right

    def table(self) -> List[Dict[str, object]]:
        """
        One row for each group, sets first and all pairs last, in the order in which they were
        added: `kind`, `name`, `pairs`, and the share of right ones for each direction.
        """
        kinds = ("set", "phenomenon", "field", "all")
        return [
            {
                "kind": kind,
                "name": name,
                "pairs": number,
                **{
                    direction: self._num_right[kind, name, direction] / number
                    for direction in DIRECTIONS
                },
            }
            for (kind, name), number in sorted(
                self._num_pairs.items(), key=lambda item: kinds.index(item[0][0])
            )
        ]
