"""The words that a language model predicts, in the vocabulary of its archive."""

from pathlib import Path
from typing import List, Optional, Tuple

# Namespaces of AllenNLP's `Vocabulary`, which writes a file for each.
SOFTMAX_NAMESPACE = "softmax_labels"
COUNTS_NAMESPACE = "softmax_counts_labels"


def read_predicted_words(folder: Path) -> Tuple[Optional[List[str]], Optional[List[int]]]:
    """Words, `None` without a language model, and counts, `None` if they are not known."""
    words = _read_lines(folder, SOFTMAX_NAMESPACE)
    entries = _read_lines(folder, COUNTS_NAMESPACE)
    if words is None or entries is None:
        return words, None
    return words, decode_counts(entries, len(words))


def decode_counts(entries: List[str], num_words: int) -> List[int]:
    """
    The count of each word, from run-length encoded entries `"<id> <count>"`: all words from this id
    up to that of the next entry, or up to `num_words`, have this count. Words are sorted by count,
    so that there are few entries.
    """
    first_ids, counts = zip(*(map(int, entry.split()) for entry in entries))
    ends = [*first_ids[1:], num_words]
    return [c for first, end, c in zip(first_ids, ends, counts) for _ in range(first, end)]


def encode_counts(counts: List[Optional[int]]) -> List[str]:
    """The entries for `decode_counts`; none if counts are not known."""
    starts = [i for i, count in enumerate(counts) if i == 0 or count != counts[i - 1]]
    return [f"{start} {counts[start]}" for start in starts if counts[start] is not None]


def _read_lines(folder: Path, namespace: str) -> Optional[List[str]]:
    path = folder / "vocabulary" / f"{namespace}.txt"
    if not path.is_file():
        return None
    # Words may contain other line ends than this one.
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [line.removesuffix("\n") for line in lines]
