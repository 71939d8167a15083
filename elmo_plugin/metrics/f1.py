"""Precision, recall and F1."""

from typing import Tuple


def quotient(part: float, whole: float) -> float:
    """`part / whole`, or 0 if `whole` is."""
    return part / whole if whole else 0.0


def precision_recall_f1(
    right_predicted: float, predicted: float, right_gold: float, gold: float
) -> Tuple[float, float, float]:
    """
    `right_predicted / predicted`, `right_gold / gold`, and their harmonic mean. Quotients with a
    zero denominator are 0.
    """
    precision, recall = quotient(right_predicted, predicted), quotient(right_gold, gold)
    return precision, recall, quotient(2 * precision * recall, precision + recall)
