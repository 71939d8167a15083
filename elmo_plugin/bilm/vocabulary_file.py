"""The file of the words that a biLM predicts or has token embeddings of."""

import os
from typing import List, Optional, Sequence, Set, Tuple, Union

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, check_least
from elmo_plugin.util.text_files import find_file, numbered_lines

VOCABULARY_FILE = "vocabulary.txt"

BEGIN_SENTENCE = "<S>"
END_SENTENCE = "</S>"
UNKNOWN = "<UNK>"
SPECIALS = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN)

# A word and its count; `None` if that is not known.
Entry = Tuple[str, Optional[int]]


def check_choice(size: Optional[int], min_count: int) -> None:
    """Raises `ConfigurationError` if `size` is below 4 or `min_count` below 1."""
    if size is not None and size <= len(SPECIALS):
        raise ConfigurationError(
            f"Expected a vocabulary `size` of at least {len(SPECIALS) + 1}, found {size}: "
            f"it includes {', '.join(SPECIALS)}."
        )
    check_least(1, min_count=min_count)


def check_min_count(min_count: int, highest: int) -> None:
    """Raises `ConfigurationError` if `min_count` leaves out even the word of the highest count."""
    if min_count > highest:
        raise ConfigurationError(
            f"Expected `min_count` of at most {highest}, the count of the most frequent word, "
            f"found {min_count}."
        )


def check_specials(words: Sequence[str], location: str) -> None:
    """Raises `ConfigurationError` unless the words begin with `<S>`, `</S>` and `<UNK>`."""
    found = words[: len(SPECIALS)]
    if tuple(found) != SPECIALS:
        raise ConfigurationError(
            f"{location}: expected words to predict that begin with {', '.join(SPECIALS)}, found "
            f"{list(found)}. Set `vocabulary` to one of type elmo-bilm."
        )


def write_vocabulary(entries: Sequence[Entry], path: Union[str, os.PathLike]) -> None:
    """Writes lines `word<TAB>count`, or `word` if the count is not known, with `atomic_write`."""
    with atomic_write(path) as unfinished:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(
                f"{word}\n" if count is None else f"{word}\t{count}\n" for word, count in entries
            )


def read_vocabulary(
    path: Union[str, os.PathLike], size: Optional[int] = None, min_count: int = 1
) -> List[Entry]:
    """
    Reads a file of `write_vocabulary` or of bilm-tf (words without counts), plain or gzip.

    # Parameters

    path : `Union[str, os.PathLike]`
    size, min_count : `Optional[int]`, `int`
        Leave out words at the end of the file, see `choose_words`.

    # Raises

    `ConfigurationError`
        If there is no such file, it does not begin with `<S>`, `</S>` and `<UNK>`, contains no
        other word or a word twice, is not in descending order of the counts, or has no counts for
        `min_count`.
    """
    check_choice(size, min_count)
    entries: List[Entry] = []
    seen: Set[str] = set()
    try:
        for number, line in numbered_lines(path, newline="\n"):
            # bilm-tf leaves this line out too.
            if line.strip() == "!!!MAXTERMID":
                continue
            location = f"{path}:{number}"
            word, count = _entry(line, location)
            _check_entry(word, count, entries, location)
            if word in seen:
                raise ConfigurationError(f"{location}: `{word}` occurs twice. Remove one of them.")
            seen.add(word)
            entries.append((word, count))
    except FileNotFoundError:
        raise ConfigurationError(
            f"Vocabulary file {path} does not exist. Write one with `elmo vocabulary`."
        ) from None
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return _cut(entries, size, min_count, path)


def words_beside(options_file: Union[str, os.PathLike]) -> List[str]:
    """
    The words of a biLM with token embeddings, from the `vocabulary.txt` beside its options, or a
    `ConfigurationError` if there is none.
    """
    path = os.path.join(os.path.dirname(options_file), VOCABULARY_FILE)
    try:
        find_file(path)
    except FileNotFoundError:
        raise ConfigurationError(
            f"{options_file} has no `char_cnn`, so the biLM has token embeddings: expected their "
            f"words, one per line in the order of the rows, in {path}, which does not exist."
        ) from None
    return [word for word, _ in read_vocabulary(path)]


def _entry(line: str, location: str) -> Entry:
    word, tab, count = line.rpartition("\t")
    if not tab:
        word = line.strip()
    elif not count.strip().isdecimal():
        raise ConfigurationError(
            f"{location}: expected `word<TAB>count` with a whole number, found {line[:80]!r}."
        )
    if not word:
        raise ConfigurationError(f"{location}: expected a word, found none.")
    return word, int(count) if tab else None


def _check_entry(word: str, count: Optional[int], before: List[Entry], location: str) -> None:
    """Raises `ConfigurationError` if an entry cannot follow those before it."""
    number = len(before)
    if number < len(SPECIALS) and word != SPECIALS[number]:
        raise ConfigurationError(
            f"{location}: expected `{SPECIALS[number]}`, found `{word}`. A vocabulary begins with "
            f"{', '.join(SPECIALS)}; write one with `elmo vocabulary`."
        )
    if before and (count is None) != (before[0][1] is None):
        raise ConfigurationError(
            f"{location}: expected a count after every word or after none, found "
            f"{'none' if count is None else count} after `{word}`."
        )
    if number > len(SPECIALS) and count is not None and count > (before[-1][1] or 0):
        raise ConfigurationError(
            f"{location}: expected words in descending order of their counts, found `{word}` "
            f"({count}) after `{before[-1][0]}` ({before[-1][1]}). Sampled softmax would draw "
            "the wrong words; sort the file, or write it with `elmo vocabulary`."
        )


def _cut(
    entries: List[Entry], size: Optional[int], min_count: int, path: Union[str, os.PathLike]
) -> List[Entry]:
    if len(entries) <= len(SPECIALS):
        raise ConfigurationError(
            f"{path}: expected {', '.join(SPECIALS)} and the words to predict, one per line, "
            f"found {len(entries)} lines."
        )
    kept = entries[:size]
    if entries[0][1] is None:
        if min_count > 1:
            raise ConfigurationError(
                f"{path} holds no counts, so `min_count` {min_count} cannot be applied. Leave "
                "it out, or write the file again with `elmo vocabulary`."
            )
        return kept
    # Every word has a count; counts are in descending order. Words with a count of 0, which were
    # added by hand, are left out on request only.
    least = min_count if min_count > 1 else 0
    check_min_count(least, entries[len(SPECIALS)][1] or 0)
    words = [entry for entry in kept[len(SPECIALS) :] if (entry[1] or 0) >= least]
    *boundaries, unknown = kept[: len(SPECIALS)]
    left_out = entries[len(SPECIALS) + len(words) :]
    count = sum(each or 0 for _, each in [unknown, *left_out])
    return [*boundaries, (UNKNOWN, count), *words]
