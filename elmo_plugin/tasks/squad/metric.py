"""How well answers agree with those of people, by the rules of SQuAD's own script."""

import re
import string
from collections import Counter
from typing import Dict, List, Sequence

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.metrics.label_counts import over_processes

# Of ASCII only: a dash or a quotation mark beyond it counts as part of the word.
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def exact_match(answer: str, gold: str) -> float:
    """1 if both have the same words in the same order, but for articles, case and punctuation."""
    return float(_words(answer) == _words(gold))


def f1(answer: str, gold: str) -> float:
    """
    The harmonic mean of precision and recall of the words, each as often as it occurs, but for
    articles, case and punctuation. 0 without a common word, even where neither has any.
    """
    found, wanted = _words(answer), _words(gold)
    num_common = sum((Counter(found) & Counter(wanted)).values())
    if num_common == 0:
        return 0.0
    precision, recall = num_common / len(found), num_common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _words(text: str) -> List[str]:
    # Punctuation leaves no gap: "well-known" is one word, and the article in "a-b" is none.
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


@Metric.register("elmo-squad")
class SquadScores(Metric):
    """
    Exact match and F1 of answers, as the script that comes with
    [SQuAD 1.1](https://rajpurkar.github.io/SQuAD-explorer/) counts them: each answer is compared
    with the gold answer that it agrees with best, for the two scores apart.
    """

    def __init__(self) -> None:
        self._sums: Counter = Counter()

    @overrides(check_signature=False)
    def __call__(self, answers: Sequence[str], gold_answers: Sequence[Sequence[str]]) -> None:
        """
        # Parameters

        answers : `Sequence[str]`
            An answer to each question.
        gold_answers : `Sequence[Sequence[str]]`
            The right answers to each of the same questions.

        # Raises

        `ValueError`
            If the two are not about the same number of questions, or one has no gold answer.
        """
        if len(answers) != len(gold_answers):
            raise ValueError(
                f"SquadScores needs the gold answers of each question: {len(answers)} questions "
                f"were answered, {len(gold_answers)} have gold answers."
            )
        for number, (answer, golds) in enumerate(zip(answers, gold_answers)):
            if not golds:
                raise ValueError(
                    f"SquadScores needs a gold answer of each question, but question {number} of "
                    "the batch has none. Score labelled questions only."
                )
            self._sums["questions"] += 1
            self._sums["em"] += max(exact_match(answer, gold) for gold in golds)
            self._sums["f1"] += max(f1(answer, gold) for gold in golds)

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `em` and `f1` as fractions, not percentages; over all processes when there are several.
            Nothing when there were no questions.
        """
        (sums,) = over_processes([self._sums])
        scores = {}
        if sums["questions"]:
            scores = {name: sums[name] / sums["questions"] for name in ("em", "f1")}
        if reset:
            self.reset()
        return scores

    @overrides
    def reset(self) -> None:
        self._sums.clear()
