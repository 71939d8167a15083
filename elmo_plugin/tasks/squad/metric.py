import re
import string
from collections import Counter
from typing import Dict, List, Sequence

from overrides import overrides

from elmo_plugin.tasks.metrics import SummedMetric, precision_recall_f1

# ASCII punctuation only: the official script keeps typographic dashes and quotation marks.
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def exact_match(answer: str, gold: str) -> float:
    """1 if both have the same words in the same order, ignoring articles, case and punctuation."""
    return float(_words(answer) == _words(gold))


def f1(answer: str, gold: str) -> float:
    """F1 of the words as multisets, compared as in `exact_match`; 0 if no word is common."""
    found, wanted = _words(answer), _words(gold)
    num_common = sum((Counter(found) & Counter(wanted)).values())
    return precision_recall_f1(num_common, len(found), num_common, len(wanted))[2]


def _words(text: str) -> List[str]:
    # Punctuation is deleted, not replaced by a space: "well-known" becomes "wellknown".
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


class SquadScores(SummedMetric):
    """
    Exact match and F1 by the official [SQuAD 1.1](https://rajpurkar.github.io/SQuAD-explorer/)
    script. If a question has several gold answers, each score is the maximum over them.
    """

    @overrides(check_signature=False)
    def __call__(self, answers: Sequence[str], gold_answers: Sequence[Sequence[str]]) -> None:
        """Counts the answer to each question; each has at least one gold answer."""
        for answer, golds in zip(answers, gold_answers, strict=True):
            self._sums["questions"] += 1
            self._sums["em"] += max(exact_match(answer, gold) for gold in golds)
            self._sums["f1"] += max(f1(answer, gold) for gold in golds)

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """Means over all questions, `em` and `f1`, as fractions. Empty if there were none."""
        if not sums["questions"]:
            return {}
        return {name: sums[name] / sums["questions"] for name in ("em", "f1")}
