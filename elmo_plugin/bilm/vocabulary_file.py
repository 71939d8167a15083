"""Chooses, writes and reads the words that a biLM predicts or has token embeddings of."""

import os
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

from elmo_plugin.bilm.pretraining.text import TextPath, find_shards
from elmo_plugin.corpora.sentence_per_line import count_words
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, check_least, unexpected
from elmo_plugin.util.text_files import numbered_lines

VOCABULARY_FILE = "vocabulary.txt"

BEGIN_SENTENCE = "<S>"
END_SENTENCE = "</S>"
UNKNOWN = "<UNK>"
SPECIALS = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN)

# Namespaces of AllenNLP's `Vocabulary`, which writes a file for each.
SOFTMAX_NAMESPACE = "softmax_labels"
COUNTS_NAMESPACE = "softmax_counts_labels"

# A word and its count; `None` if that is not known.
Entry = Tuple[str, Optional[int]]


def count_and_choose(
    text: TextPath,
    size: Optional[int] = None,
    min_count: int = 1,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> List[Entry]:
    """
    Counts the words of a text, see `Text`, and chooses those to predict: `<S>`, `</S>`, `<UNK>`,
    then the others by descending count, and in alphabetical order if the counts are equal. Raises
    `ConfigurationError` if there is no such text or no word in it to predict.

    Words that occur less than `min_count` times are left out, and words beyond `size`, which
    includes the first three. `<UNK>` has the sum of their counts, `<S>` and `</S>` count sentences.
    """
    # Before the text is read, which may take hours.
    _check_choice(size, min_count)
    shards = find_shards(text)
    counts, num_sentences = count_words(shards, on_progress)
    # The text itself may contain these words.
    given = Counter({word: counts.pop(word, 0) for word in SPECIALS})
    given.update({BEGIN_SENTENCE: num_sentences, END_SENTENCE: num_sentences})
    words = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return _chosen([*given.items(), *words], size, min_count, ", ".join(map(str, shards)))


def check_specials(words: Sequence[str], location: str) -> None:
    """Raises `ConfigurationError` unless the words begin with `<S>`, `</S>` and `<UNK>`."""
    found = words[: len(SPECIALS)]
    if tuple(found) != SPECIALS:
        raise ConfigurationError(
            f"{location}: expected words to predict that begin with {', '.join(SPECIALS)}, found "
            f"{list(found)}. Set `vocabulary` to one of type elmo-bilm."
        )


def write_vocabulary(entries: Sequence[Entry], path: Union[str, os.PathLike]) -> None:
    """Writes lines `word<TAB>count`, or `word` if the count is not known."""
    with atomic_write(path) as unfinished:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(
                f"{word}\n" if count is None else f"{word}\t{count}\n" for word, count in entries
            )


def read_vocabulary(
    path: Union[str, os.PathLike], size: Optional[int] = None, min_count: int = 1
) -> List[Entry]:
    """
    Reads a file of `write_vocabulary` or of bilm-tf (words without counts), plain or gzip. `size`
    and `min_count` leave out words at its end, as in `count_and_choose`. Raises
    `ConfigurationError` if the file does not exist, lacks words or counts, or has a word twice or
    out of order.
    """
    _check_choice(size, min_count)
    entries: Dict[str, Optional[int]] = {}
    try:
        for number, line in numbered_lines(path, newline="\n"):
            # bilm-tf leaves this line out too.
            if line.strip() != "!!!MAXTERMID":
                _add_entry(entries, line, f"{path}:{number}")
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path} does not exist: expected the words of a softmax or, if the options of the "
            "biLM have no `char_cnn`, of its token embeddings. `elmo vocabulary` writes them."
        ) from None
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return _chosen(list(entries.items()), size, min_count, str(path))


def read_predicted_words(folder: Path) -> Tuple[Optional[List[str]], Optional[List[int]]]:
    """The words that a trained model predicts, and their counts; `None` for what is unknown."""
    words, entries = (_lines(folder, name) for name in (SOFTMAX_NAMESPACE, COUNTS_NAMESPACE))
    if words is None or entries is None:
        return words, None
    return words, decode_counts(entries, len(words))


def decode_counts(entries: List[str], num_words: int) -> List[int]:
    """Expands runs: `"<id> <count>"` is the count of the words from this id up to the next."""
    first_ids, counts = zip(*(map(int, entry.split()) for entry in entries))
    ends = [*first_ids[1:], num_words]
    return [c for first, end, c in zip(first_ids, ends, counts) for _ in range(first, end)]


def encode_counts(counts: List[Optional[int]]) -> List[str]:
    """The entries for `decode_counts`; none if counts are not known."""
    starts = [i for i, count in enumerate(counts) if i == 0 or count != counts[i - 1]]
    return [f"{start} {counts[start]}" for start in starts if counts[start] is not None]


def _lines(folder: Path, namespace: str) -> Optional[List[str]]:
    path = folder / "vocabulary" / f"{namespace}.txt"
    # Words may contain other line ends than this one.
    return [line for _, line in numbered_lines(path, newline="\n")] if path.is_file() else None


def _check_choice(size: Optional[int], min_count: int) -> None:
    if size is not None and size <= len(SPECIALS):
        raise ConfigurationError(
            f"Expected a vocabulary `size` of at least {len(SPECIALS) + 1}, found {size}: "
            f"it includes {', '.join(SPECIALS)}."
        )
    check_least(1, min_count=min_count)


def _add_entry(before: Dict[str, Optional[int]], line: str, location: str) -> None:
    """Adds a line to those before it. Raises `ValueError` if it cannot follow them."""
    last, last_count = next(reversed(before.items()), ("", None))
    word, tab, text = line.rpartition("\t")
    word, count = (word, text.strip()) if tab else (line.strip(), None)
    number = len(before)
    has_counts = bool(tab) if number == 0 else last_count is not None
    expected, found = "", f"`{word}`"
    if not word or bool(tab) != has_counts or not (count is None or count.isdecimal()):
        expected = "`word<TAB>count` with a whole number" if has_counts else "a word without count"
        found = repr(line[:80])
    elif number < len(SPECIALS) and word != SPECIALS[number]:
        expected = f"`{SPECIALS[number]}`"
    elif word in before:
        expected, found = "every word once", f"`{word}` twice"
    elif number > len(SPECIALS) and int(count or 0) > int(last_count or 0):
        # Sampled softmax would draw the wrong words.
        expected = "words in descending order of their counts"
        found = f"`{word}` ({count}) after `{last}` ({last_count})"
    if expected:
        advice = f"A vocabulary begins with {', '.join(SPECIALS)}; `elmo vocabulary` writes one."
        raise unexpected(location, expected, found, advice)
    before[word] = None if count is None else int(count)


def _chosen(
    entries: List[Entry], size: Optional[int], min_count: int, location: str
) -> List[Entry]:
    """Leaves out words, and adds their counts to the count of `<UNK>`."""
    # A file may also have words with a count of 0, added by hand; these stay by default.
    least = min_count if min_count > 1 else 0
    words = [entry for entry in entries[len(SPECIALS) : size] if (entry[1] or 0) >= least]
    if not words:
        raise ConfigurationError(
            f"{location}: expected words besides {', '.join(SPECIALS)} with counts of at least "
            f"`min_count` ({min_count}), found none."
        )
    *boundaries, (unknown, count) = entries[: len(SPECIALS)]
    if count is not None:
        left_out = entries[len(SPECIALS) + len(words) :]
        count += sum(left_count or 0 for _, left_count in left_out)
    return [*boundaries, (unknown, count), *words]
