"""Precision, recall and F1."""

from typing import Tuple


def quotient(part: float, whole: float) -> float:
    """`part / whole`, or 0 if `whole` is."""
    return part / whole if whole else 0.0


def precision_recall_f1(
    precision_numerator: float,
    precision_denominator: float,
    recall_numerator: float,
    recall_denominator: float,
) -> Tuple[float, float, float]:
    """
    Precision and recall from their numerators and denominators, and F1, their harmonic mean.
    Quotients with a zero denominator are 0.
    """
    precision = quotient(precision_numerator, precision_denominator)
    recall = quotient(recall_numerator, recall_denominator)
    return precision, recall, quotient(2 * precision * recall, precision + recall)
