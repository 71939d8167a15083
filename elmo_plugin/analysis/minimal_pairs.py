"""How often a biLM finds the good sentence of a minimal pair more likely, as in BLiMP."""

from typing import Callable, Dict, List, NamedTuple, Sequence

import numpy

from elmo_plugin.analysis.surprisal import DIRECTIONS, Scorer
from elmo_plugin.corpora.minimal_pairs import MinimalPair

_KINDS = ("set", "phenomenon", "field", "all")


class PairAccuracy(NamedTuple):
    """How many pairs a group has, and in how many the good sentence is more likely."""

    #: `set`, `phenomenon`, `field` or `all`.
    kind: str
    name: str
    num_pairs: int
    #: The share of right pairs in each of `DIRECTIONS`. A tie is wrong, as in BLiMP.
    shares: List[float]


def pair_accuracies(
    scorer: Scorer,
    pairs: Sequence[MinimalPair],
    batch_size: int = 64,
    on_progress: Callable[[int], object] = lambda num_pairs: None,
) -> List[PairAccuracy]:
    """
    Scores the sentences of pairs, and returns the accuracies of each set, phenomenon and field, and
    of all pairs. Calls `on_progress(1)` after each pair.
    """
    scores = scorer.score((each for pair in pairs for each in (pair.good, pair.bad)), batch_size)
    groups: Dict[str, Dict[str, List[List[bool]]]] = {kind: {} for kind in _KINDS}
    for pair, good, bad in zip(pairs, scores, scores):
        right = [good.surprisal(name) < bad.surprisal(name) for name in DIRECTIONS]
        for kind, name in zip(_KINDS, (pair.uid, pair.phenomenon, pair.field, "all")):
            if name:
                groups[kind].setdefault(name, []).append(right)
        on_progress(1)
    return [
        PairAccuracy(kind, name, len(right), numpy.mean(right, axis=0).tolist())
        for kind in _KINDS
        for name, right in groups[kind].items()
    ]
