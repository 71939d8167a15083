"""Counts of spans in text: cases of tests, and the tables of metrics."""

import re
from typing import Any, Dict, List, Tuple

import pytest

from elmo_plugin.tasks.metrics import SpanF1

Counts = Dict[str, Tuple[int, ...]]


def span_cases(text: str) -> List[Any]:
    """
    Parameters of tests: predicted tags, gold tags, and three counts per label. A line names each
    case, and the indented lines below it have all three, separated by bars.
    """
    cases = []
    for rule, case in re.findall(r"^(\S.*):\n((?: .*\n)+)", text, re.MULTILINE):
        predicted, gold, rows = case.split("|")
        counts = {label: tuple(map(int, row)) for label, *row in map(str.split, rows.split(","))}
        cases.append(pytest.param(predicted.split(), gold.split(), counts, id=rule))
    return cases


def read_table(metric: SpanF1) -> Counts:
    rows = [line.split() for line in metric.table().splitlines()[1:]]
    return {
        row[0].replace("Overall", "overall"): tuple(map(int, row[1:4]))
        for row in rows
        if row[0] != "Accuracy"
    }
