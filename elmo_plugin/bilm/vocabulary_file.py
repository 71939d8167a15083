"""The words that a biLM predicts, or has token embeddings of, and their file."""

import os
from collections import Counter
from typing import List, Optional, Sequence, Set, Tuple, Union

from elmo_plugin.corpora.files import find_file, numbered_lines
from elmo_plugin.corpora.word_counts import WordCounts
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError

VOCABULARY_FILE = "vocabulary.txt"

BEGIN_SENTENCE = "<S>"
END_SENTENCE = "</S>"
UNKNOWN = "<UNK>"
SPECIALS = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN)

# A word and how often it is predicted; `None` if that is not known.
Entry = Tuple[str, Optional[int]]


def choose_words(counts: WordCounts, size: Optional[int] = None, min_count: int = 1) -> List[Entry]:
    """
    The words to predict: first `<S>`, `</S>` and `<UNK>`, then the most frequent ones in
    descending order, those of one count by their letters.

    # Parameters

    counts : `WordCounts`
        The words of the training text.
    size : `Optional[int]`, optional (default = `None`)
        How many words to keep at most, the three included.
    min_count : `int`, optional (default = `1`)
        Leave out words that occur less often.

    # Returns

    `List[Entry]`
        Both marks are counted once per sentence, `<UNK>` once for each word left out.

    # Raises

    `ConfigurationError`
        If `size` is below 4 or `min_count` below 1.
    """
    check_choice(size, min_count)
    given = Counter({BEGIN_SENTENCE: counts.num_sentences, END_SENTENCE: counts.num_sentences})
    # The text itself may contain marks of sentences or unknown words.
    given.update({word: counts.words[word] for word in SPECIALS})
    words = [item for item in counts.words.items() if item[0] not in SPECIALS]
    words.sort(key=lambda item: (-item[1], item[0]))
    kept: List[Entry] = [item for item in words[: _num_words(size)] if item[1] >= min_count]
    given[UNKNOWN] += sum(count for _, count in words[len(kept) :])
    return [*((word, given[word]) for word in SPECIALS), *kept]


def check_choice(size: Optional[int], min_count: int) -> None:
    """
    # Raises

    `ConfigurationError`
        If these are no possible arguments of `choose_words`.
    """
    if size is not None and size <= len(SPECIALS):
        raise ConfigurationError(
            f"Expected a vocabulary `size` of at least {len(SPECIALS) + 1}, found {size}: "
            f"{', '.join(SPECIALS)} are counted."
        )
    if min_count < 1:
        raise ConfigurationError(f"Expected `min_count` of at least 1, found {min_count}.")


def check_specials(words: Sequence[str], place: str) -> None:
    """
    # Raises

    `ConfigurationError`
        If these are not the words of a language model; `place` is what the message calls them.
    """
    first = list(words[: len(SPECIALS)])
    if first != list(SPECIALS):
        raise ConfigurationError(
            f"{place}: expected words to predict that begin with {', '.join(SPECIALS)}, found "
            f"{first}. Set `vocabulary` to one of type elmo-bilm."
        )


def write_vocabulary(entries: Sequence[Entry], path: Union[str, os.PathLike]) -> None:
    """
    Writes `word<TAB>count` per line, or the word alone if its count is not known, through
    `atomic_write`.
    """
    with atomic_write(path) as unfinished:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(
                f"{word}\n" if count is None else f"{word}\t{count}\n" for word, count in entries
            )


def read_vocabulary(
    path: Union[str, os.PathLike], size: Optional[int] = None, min_count: int = 1
) -> List[Entry]:
    """
    Reads what `write_vocabulary` writes, or the vocabulary of bilm-tf: a word per line, no counts.

    # Parameters

    path : `Union[str, os.PathLike]`
        The file, plain or gzip.
    size, min_count : `Optional[int]`, `int`
        See `choose_words`: leave out words at the end of the file.

    # Raises

    `ConfigurationError`
        If there is no such file, if it does not begin with `<S>`, `</S>` and `<UNK>`, holds a
        word twice, is not in descending order of the counts, or lacks the counts for `min_count`.
    """
    check_choice(size, min_count)
    entries: List[Entry] = []
    seen: Set[str] = set()
    try:
        for number, line in numbered_lines(path, newline="\n"):
            place = f"{path}:{number}"
            word, count = _entry(line, place)
            _check_entry(word, count, entries, place)
            if word in seen:
                raise ConfigurationError(f"{place}: `{word}` occurs in the file twice.")
            seen.add(word)
            entries.append((word, count))
    except FileNotFoundError:
        raise ConfigurationError(
            f"Vocabulary file {path} does not exist. Write one with `allennlp elmo-vocabulary`."
        ) from None
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return _cut(entries, size, min_count, path)


def words_beside(options_file: Union[str, os.PathLike]) -> List[str]:
    """
    The words of a biLM that reads token embeddings, from the `vocabulary.txt` beside its options.

    # Raises

    `ConfigurationError`
        If there is no such file, or it is no vocabulary.
    """
    path = os.path.join(os.path.dirname(options_file), VOCABULARY_FILE)
    try:
        find_file(path)
    except FileNotFoundError:
        raise ConfigurationError(
            f"{options_file} has no `char_cnn`, so that the biLM reads token embeddings: expected "
            f"their words, one per line in the order of the rows, in {path}, which does not exist. "
            "Put it there."
        ) from None
    return [word for word, _ in read_vocabulary(path)]


def _num_words(size: Optional[int]) -> Optional[int]:
    return None if size is None else size - len(SPECIALS)


def _entry(line: str, place: str) -> Entry:
    word, tab, count = line.rpartition("\t")
    if not tab:
        word = line.strip()
    elif not count.strip().isdecimal():
        raise ConfigurationError(
            f"{place}: expected `word<TAB>count` with a whole number, found {line[:80]!r}."
        )
    if not word:
        raise ConfigurationError(f"{place}: expected a word, found none.")
    return word, int(count) if tab else None


def _check_entry(word: str, count: Optional[int], before: List[Entry], place: str) -> None:
    """Raises an error if a line cannot follow those before it."""
    number = len(before)
    if number < len(SPECIALS) and word != SPECIALS[number]:
        raise ConfigurationError(
            f"{place}: expected `{SPECIALS[number]}`, found `{word}`. A vocabulary begins with "
            f"{', '.join(SPECIALS)}; write one with `allennlp elmo-vocabulary`."
        )
    if before and (count is None) != (before[0][1] is None):
        raise ConfigurationError(
            f"{place}: expected a count after every word or after none, found "
            f"{'none' if count is None else count} after `{word}`."
        )
    if number > len(SPECIALS) and count is not None and count > (before[-1][1] or 0):
        raise ConfigurationError(
            f"{place}: expected words in descending order of their counts, found `{word}` "
            f"({count}) after `{before[-1][0]}` ({before[-1][1]}). Sampled softmax would draw "
            "the wrong words; sort the file, or write it with `allennlp elmo-vocabulary`."
        )


def _cut(
    entries: List[Entry], size: Optional[int], min_count: int, path: Union[str, os.PathLike]
) -> List[Entry]:
    if len(entries) < len(SPECIALS):
        raise ConfigurationError(
            f"{path}: expected {', '.join(SPECIALS)} and the words to predict, one per line, "
            f"found {len(entries)} lines."
        )
    specials, words = entries[: len(SPECIALS)], entries[len(SPECIALS) :]
    kept = words[: _num_words(size)]
    if specials[0][1] is None:
        if min_count > 1:
            raise ConfigurationError(
                f"{path} holds no counts, so `min_count` {min_count} cannot be applied. Leave it "
                "out, or write the file anew with `allennlp elmo-vocabulary`."
            )
        return specials + kept
    # From here on every word has a count.
    kept = [(word, count) for word, count in kept if (count or 0) >= min_count]
    unknown = sum(count or 0 for _, count in [specials[-1], *words[len(kept) :]])
    return [*specials[:-1], (UNKNOWN, unknown), *kept]
