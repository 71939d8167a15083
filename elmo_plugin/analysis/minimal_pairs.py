from dataclasses import dataclass
from itertools import tee
from typing import Any, Dict, Iterable, Iterator, List, Optional

from elmo_plugin.analysis.surprisal import DIRECTIONS, Scorer, SentenceScore
from elmo_plugin.corpora.minimal_pairs import MinimalPair

Counts = Dict[str, Dict[str, List[int]]]

_KINDS = ("set", "phenomenon", "field", "all")


@dataclass(frozen=True)
class JudgedPair:
    """A pair and the scores of its sentences."""

    pair: MinimalPair
    good: SentenceScore
    bad: SentenceScore

    def is_right(self, direction: str) -> bool:
        """Whether the good sentence is more likely. A tie is wrong, as in BLiMP."""
        return self.good.surprisal(direction) < self.bad.surprisal(direction)


def judge(
    scorer: Scorer, pairs: Iterable[MinimalPair], batch_size: int = 64
) -> Iterator[JudgedPair]:
    """Scores the sentences of each pair, in order. RAM holds at most `8 * batch_size` pairs."""
    to_score, scored = tee(pairs)
    sentences = (sentence for pair in to_score for sentence in (pair.good, pair.bad))
    scores = scorer.score(sentences, batch_size)
    return map(JudgedPair, scored, scores, scores)


class PairAccuracy:
    """Counts how often the good sentence is more likely. `counts` continues an interrupted run."""

    def __init__(self, counts: Optional[Counts] = None) -> None:
        #: By kind and name of a group: numbers of all pairs, and of right pairs per direction.
        self.counts: Counts = counts or {kind: {} for kind in _KINDS}

    def add(self, judged: JudgedPair) -> None:
        pair = judged.pair
        right = [judged.is_right(direction) for direction in DIRECTIONS]
        for kind, name in zip(_KINDS, (pair.uid, pair.phenomenon, pair.field, "all")):
            if name:
                before = self.counts[kind].get(name, [0] * (1 + len(DIRECTIONS)))
                self.counts[kind][name] = [old + new for old, new in zip(before, [1, *right])]

    def table(self) -> List[Dict[str, Any]]:
        """
        One row per set, phenomenon and field, and one for all pairs: `kind`, `name`, `pairs`, and
        the share of right pairs in each direction.
        """
        return [
            {
                "kind": kind,
                "name": name,
                "pairs": number,
                **{direction: count / number for direction, count in zip(DIRECTIONS, right)},
            }
            for kind in _KINDS
            for name, (number, *right) in self.counts[kind].items()
        ]
