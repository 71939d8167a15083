"""Chooses, writes and reads the words that a biLM predicts or has token embeddings of."""

import os
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Union

from elmo_plugin.bilm.pretraining.text import TextPath, find_shards
from elmo_plugin.corpora.sentence_per_line import WordCounts, count_words
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, check_least
from elmo_plugin.util.text_files import find_file, numbered_lines

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
    size: Optional[int],
    min_count: int,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> List[Entry]:
    """
    Counts the words of a text and chooses those to predict, see `Text` and `choose_words`. Raises
    `ConfigurationError` if there is no such text or no word in it.
    """
    _check_choice(size, min_count)
    shards = find_shards(text)
    counts = count_words(shards, on_progress)
    if not counts.words:
        raise ConfigurationError(f"Expected words, found none in {', '.join(map(str, shards))}.")
    return choose_words(counts, size, min_count)


def choose_words(counts: WordCounts, size: Optional[int] = None, min_count: int = 1) -> List[Entry]:
    """
    The words to predict: `<S>`, `</S>`, `<UNK>`, then the others by descending count, and in
    alphabetical order if the counts are equal.

    Words that occur less than `min_count` times are left out, and words beyond `size`, which
    includes the first three. `<UNK>` has the sum of their counts, `<S>` and `</S>` count sentences.
    """
    given = Counter({BEGIN_SENTENCE: counts.num_sentences, END_SENTENCE: counts.num_sentences})
    # The text itself may contain these words.
    given.update({word: counts.words[word] for word in SPECIALS})
    words = [item for item in counts.words.items() if item[0] not in SPECIALS]
    words.sort(key=lambda item: (-item[1], item[0]))
    return _chosen([*((word, given[word]) for word in SPECIALS), *words], size, min_count)


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
    and `min_count` leave out words at its end, as in `choose_words`. Raises `ConfigurationError` if
    the file does not exist, lacks words or counts, or has a word twice or out of order.
    """
    entries: Dict[str, Optional[int]] = {}
    try:
        for number, line in numbered_lines(path, newline="\n"):
            # bilm-tf leaves this line out too.
            if line.strip() == "!!!MAXTERMID":
                continue
            word, tab, count = line.rpartition("\t")
            word = word if tab else line.strip()
            problem = _problem(word, count if tab else None, entries)
            if problem is not None:
                raise ConfigurationError(f"{path}:{number}: {problem}")
            entries[word] = int(count) if tab else None
    except FileNotFoundError:
        raise ConfigurationError(
            f"Vocabulary file {path} does not exist. Write one with `elmo vocabulary`."
        ) from None
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    if len(entries) <= len(SPECIALS):
        raise ConfigurationError(
            f"{path}: expected {', '.join(SPECIALS)} and the words to predict, one per line, "
            f"found {len(entries)} lines."
        )
    return _chosen(list(entries.items()), size, min_count, str(path))


def words_beside(options_file: Union[str, os.PathLike]) -> List[str]:
    """Reads the `vocabulary.txt` beside an options file, or raises `ConfigurationError`."""
    path = os.path.join(os.path.dirname(options_file), VOCABULARY_FILE)
    try:
        find_file(path)
    except FileNotFoundError:
        raise ConfigurationError(
            f"{options_file} has no `char_cnn`, so the biLM has token embeddings: expected their "
            f"words, one per line in the order of the rows, in {path}, which does not exist."
        ) from None
    return [word for word, _ in read_vocabulary(path)]


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
    if not path.is_file():
        return None
    # Words may contain other line ends than this one.
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [line.removesuffix("\n") for line in lines]


def _check_choice(size: Optional[int], min_count: int) -> None:
    if size is not None and size <= len(SPECIALS):
        raise ConfigurationError(
            f"Expected a vocabulary `size` of at least {len(SPECIALS) + 1}, found {size}: "
            f"it includes {', '.join(SPECIALS)}."
        )
    check_least(1, min_count=min_count)


def _problem(word: str, count: Optional[str], before: Dict[str, Optional[int]]) -> Optional[str]:
    """Why a line cannot follow those before it; `None` if it can."""
    number = len(before)
    if count is not None and not count.strip().isdecimal():
        line = f"{word}\t{count}"
        return f"expected `word<TAB>count` with a whole number, found {line[:80]!r}."
    if not word:
        return "expected a word, found none."
    if number < len(SPECIALS) and word != SPECIALS[number]:
        return (
            f"expected `{SPECIALS[number]}`, found `{word}`. A vocabulary begins with "
            f"{', '.join(SPECIALS)}; write one with `elmo vocabulary`."
        )
    last, last_count = next(reversed(before.items()), (word, count))
    if (count is None) != (last_count is None):
        found = "none" if count is None else count
        return f"expected a count after every word or after none, found {found} after `{word}`."
    if number > len(SPECIALS) and int(count or 0) > int(last_count or 0):
        return (
            f"expected words in descending order of their counts, found `{word}` ({count}) after "
            f"`{last}` ({last_count}). Sampled softmax would draw the wrong words; sort the file, "
            "or write it with `elmo vocabulary`."
        )
    return f"`{word}` occurs twice. Remove one of them." if word in before else None


def _chosen(
    entries: List[Entry], size: Optional[int], min_count: int, file: str = ""
) -> List[Entry]:
    """Leaves out words, and adds their counts to the count of `<UNK>`."""
    _check_choice(size, min_count)
    words = entries[len(SPECIALS) : size]
    highest = entries[len(SPECIALS)][1] if words else min_count
    if highest is None:
        if min_count > 1:
            raise ConfigurationError(
                f"{file} holds no counts, so `min_count` {min_count} cannot be applied. Leave "
                "it out, or write the file again with `elmo vocabulary`."
            )
        return entries[:size]
    # A file may also have words with a count of 0, added by hand; these stay by default.
    least = min_count if min_count > 1 else 0
    if least > highest:
        raise ConfigurationError(
            f"Expected `min_count` of at most {highest}, the count of the most frequent word, "
            f"found {min_count}."
        )
    words = [entry for entry in words if (entry[1] or 0) >= least]
    *boundaries, unknown = entries[: len(SPECIALS)]
    left_out = entries[len(SPECIALS) + len(words) :]
    return [*boundaries, (UNKNOWN, sum(count or 0 for _, count in [unknown, *left_out])), *words]
