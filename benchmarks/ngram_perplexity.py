"""
Held-out perplexity of n-gram models, for comparison with a biLM.

    python benchmarks/ngram_perplexity.py --train $ELMO_DATA/lm/large/train-0*.txt.gz \\
        --test $ELMO_DATA/lm/large/heldout.txt.gz $ELMO_DATA/lm/small/heldout.txt
    python benchmarks/ngram_perplexity.py --train a.txt --test b.txt --backward --output rows.json

The vocabulary is that of a biLM: `<S>`, `</S>`, `<UNK>` and the most frequent training words, those
of equal count in sorted order; any other word becomes `<UNK>`, which is predicted like a word. A
sentence of n words makes n + 1 predictions, the words and `</S>`; backward, the words in reverse
order and `<S>`. Perplexity is exp(mean negative log-likelihood per prediction); `both` is the
geometric mean of the two directions.

`unigram` predicts relative frequencies; its perplexity is infinite if only the test text has
`<UNK>`. The other model is interpolated modified Kneser-Ney smoothing, unpruned (Chen & Goodman
1998, An Empirical Study of Smoothing Techniques for Language Modeling), as in KenLM's lmplz: one
`<S>` per sentence, n-grams that start with it keep their own count at every length, unigrams are
interpolated with a uniform distribution. 27 million words take a minute per direction and 5 GB.
"""

import argparse
import json
import math
import resource
import time
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence

import numpy

from elmo_plugin.corpora import sentence_per_line

Row = Dict[str, Any]
BOUNDARIES_AND_UNKNOWN = ("<S>", "</S>", "<UNK>")
# Used where equation 26 gives no valid discounts, as by lmplz's --discount_fallback.
FALLBACK_DISCOUNTS = numpy.array([0.0, 0.5, 1.0, 1.5])


class Text(NamedTuple):
    """Concatenated sentences with both boundaries, and the positions of each sentence."""

    # Shape: (num_positions,)
    ids: numpy.ndarray
    # Shape: (num_sentences,)
    lengths: numpy.ndarray

    def places(self) -> numpy.ndarray:
        """The index of each position in its sentence; 0 is the boundary, which is not predicted."""
        starts = numpy.cumsum(self.lengths) - self.lengths
        return numpy.arange(len(self.ids)) - numpy.repeat(starts, self.lengths)

    def reversed(self) -> "Text":
        return Text(self.ids[::-1], self.lengths[::-1])


class Counts(NamedTuple):
    """The distinct n-grams of one length, one per row, sorted by key."""

    # Row of the n-gram without its last word, times vocabulary size, plus the last word.
    keys: numpy.ndarray
    # Row of the n-gram without its first word.
    suffixes: numpy.ndarray
    counts: numpy.ndarray


class Level(NamedTuple):
    """The keys of the n-grams of one length and the probabilities of their last words."""

    keys: numpy.ndarray
    probabilities: numpy.ndarray
    # Per context, an n-gram that is one word shorter: its interpolation weight.
    gammas: numpy.ndarray


def read_words(paths: Sequence[Path]) -> Iterator[Sequence[str]]:
    """The sentences of the files, in order, without empty lines."""
    for path in paths:
        yield from (words for _, words in sentence_per_line.read_sentences(path) if words)


def make_vocabulary(sentences: Iterable[Sequence[str]], size: int) -> Dict[str, int]:
    """Ids of the boundaries, the unknown word and the most frequent words."""
    counts: Counter = Counter()
    for words in sentences:
        counts.update(words)
    for word in BOUNDARIES_AND_UNKNOWN:
        counts.pop(word, None)
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    words = by_frequency[: size - len(BOUNDARIES_AND_UNKNOWN)]
    return {word: number for number, word in enumerate([*BOUNDARIES_AND_UNKNOWN, *words])}


def encode(sentences: Iterable[Sequence[str]], vocabulary: Dict[str, int]) -> Text:
    """The ids of the sentences with their boundaries."""
    start, end, unknown = (vocabulary[word] for word in BOUNDARIES_AND_UNKNOWN)
    # A word of the text that is spelled like a boundary is not a boundary.
    known = {**vocabulary, "<S>": unknown, "</S>": unknown}
    lengths: List[int] = []

    def ids() -> Iterator[int]:
        for words in sentences:
            lengths.append(len(words) + 2)
            yield start
            for word in words:
                yield known.get(word, unknown)
            yield end

    return Text(numpy.fromiter(ids(), dtype=numpy.int64), numpy.array(lengths, dtype=numpy.int64))


def count_ngrams(text: Text, order: int, vocabulary_size: int) -> List[Counts]:
    """
    Counts of the n-grams of 1 to `order` words within sentences. Unigrams include those with count
    zero, and their rows are the word ids. Raises `ValueError` if no sentence holds an n-gram of
    `order` words.
    """
    longest, needed = text.lengths.max(initial=2) - 2, max(order - 2, 1)
    if longest < needed:
        raise ValueError(
            f"Expected a sentence of at least {needed} words in the training text, the longest "
            f"has {longest}. Lower the order, {order}, or train on more text."
        )
    places, rows = text.places(), text.ids
    unigrams, no_suffix = numpy.arange(vocabulary_size), numpy.zeros(vocabulary_size, dtype=int)
    levels = [Counts(unigrams, no_suffix, numpy.bincount(text.ids, minlength=vocabulary_size))]
    for length in range(2, order + 1):
        ends = numpy.flatnonzero(places >= length - 1)
        keys, first, inverse, counts = numpy.unique(
            rows[ends - 1] * vocabulary_size + text.ids[ends],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        levels.append(Counts(keys, rows[ends[first]], counts))
        rows = numpy.full(len(text.ids), -1)
        rows[ends] = inverse
    return levels


def adjusted_counts(shorter: Counts, longer: Counts) -> numpy.ndarray:
    """The number of distinct words before each n-gram; its count if it starts a sentence."""
    preceding = numpy.bincount(longer.suffixes, minlength=len(shorter.keys))
    return numpy.where(preceding > 0, preceding, shorter.counts)


def discounts_of(counts: numpy.ndarray) -> numpy.ndarray:
    """Chen & Goodman's equation 26: discounts of the counts 0, 1, 2, and 3 or more."""
    _, n1, n2, n3, n4 = numpy.bincount(numpy.minimum(counts, 5), minlength=6)[:5].tolist()
    if not (n1 and n2 and n3 and n4):
        return FALLBACK_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    discounts = numpy.array([0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
    valid = (discounts >= 0).all() and (discounts <= [0, 1, 2, 3]).all()
    return discounts if valid else FALLBACK_DISCOUNTS


def smooth(
    level: Counts, counts: numpy.ndarray, shorter: numpy.ndarray, vocabulary_size: int
) -> Level:
    """
    Interpolation: the discounted relative counts of n-grams, plus the discounted probability mass
    times the probabilities without the first word of the context, which are in `shorter`.
    """
    prefixes = level.keys // vocabulary_size
    discounts = discounts_of(counts)[numpy.minimum(counts, 3)]
    totals = numpy.bincount(prefixes, weights=counts, minlength=len(shorter))
    saved = numpy.bincount(prefixes, weights=discounts, minlength=len(shorter))
    # An n-gram at the end of a sentence has no continuation.
    gammas = numpy.divide(saved, totals, out=numpy.ones_like(saved), where=totals > 0)
    probabilities = (counts - discounts) / totals[prefixes]
    probabilities += gammas[prefixes] * shorter[level.suffixes]
    return Level(level.keys, probabilities, gammas)


class KneserNey:
    """
    Interpolated modified Kneser-Ney smoothing with n-grams of up to `order` words. The id that
    `text` starts with is the boundary that is never predicted; `vocabulary_size` counts it.
    """

    def __init__(self, text: Text, order: int, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        counted = count_ngrams(text, order, vocabulary_size)
        shorter = numpy.array([1.0 / (vocabulary_size - 1)])
        self.levels: List[Level] = []
        for number, level in enumerate(counted):
            longest = number == len(counted) - 1
            counts = level.counts if longest else adjusted_counts(level, counted[number + 1])
            if number == 0:
                counts[text.ids[0]] = 0
            self.levels.append(smooth(level, counts, shorter, vocabulary_size))
            shorter = self.levels[-1].probabilities
            if number == 0:
                shorter[text.ids[0]] = 0.0

    def probabilities(self, text: Text) -> numpy.ndarray:
        """The probabilities of all predictions in a text, in order."""
        places, rows = text.places(), text.ids
        result = self.levels[0].probabilities[text.ids]
        for length, level in enumerate(self.levels[1:], start=2):
            ends = numpy.flatnonzero(places >= length - 1)
            # For unseen contexts, the probability is that of the shorter context.
            ends = ends[rows[ends - 1] >= 0]
            contexts = rows[ends - 1]
            keys = contexts * self.vocabulary_size + text.ids[ends]
            found = numpy.minimum(numpy.searchsorted(level.keys, keys), len(level.keys) - 1)
            seen = level.keys[found] == keys
            shorter = level.gammas[contexts] * result[ends]
            result[ends] = numpy.where(seen, level.probabilities[found], shorter)
            rows = numpy.full(len(text.ids), -1)
            rows[ends[seen]] = found[seen]
        return result[places > 0]


def unigram_probabilities(train: Text, test: Text, vocabulary_size: int) -> numpy.ndarray:
    """Relative frequencies in `train` of all predictions in `test`, in order."""
    predicted = train.ids[train.places() > 0]
    counts = numpy.bincount(predicted, minlength=vocabulary_size)
    return counts[test.ids[test.places() > 0]] / len(predicted)


def perplexity_of(probabilities: numpy.ndarray) -> float:
    if not probabilities.all():
        return math.inf
    return float(numpy.exp(-numpy.log(probabilities).mean()))


def compare(
    train: Text, tests: Dict[str, Text], order: int, vocabulary: Dict[str, int], direction: str
) -> List[Row]:
    """The rows of both models for every test text, in one direction."""
    if direction == "backward":
        train, tests = train.reversed(), {name: text.reversed() for name, text in tests.items()}
    model = KneserNey(train, order, len(vocabulary))
    rows = []
    for name, test in tests.items():
        models = {
            "unigram": unigram_probabilities(train, test, len(vocabulary)),
            f"Kneser-Ney {order}-gram": model.probabilities(test),
        }
        unknown = int((test.ids == vocabulary["<UNK>"]).sum())
        for label, probabilities in models.items():
            row = {"text": name, "model": label, "direction": direction, "unknown": unknown}
            row.update(predictions=len(probabilities), perplexity=perplexity_of(probabilities))
            rows.append(row)
            print_row(row)
    return rows


def geometric_means(forward: List[Row], backward: List[Row]) -> Iterator[Row]:
    for one, other in zip(forward, backward):
        mean = math.sqrt(one["perplexity"] * other["perplexity"])
        row = {**one, "direction": "both", "perplexity": mean}
        print_row(row)
        yield row


def print_row(row: Row) -> None:
    print(
        f"{row['model']:<20}{row['direction']:<10}{row['predictions']:>11,}"
        f"{row['unknown'] / row['predictions']:>9.2%}{row['perplexity']:>12.2f}  {row['text']}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", nargs="+", type=Path, required=True, help="files of one text")
    parser.add_argument("--test", nargs="+", type=Path, required=True, help="held-out texts")
    parser.add_argument("--order", type=int, default=5, help="words of the longest n-gram")
    parser.add_argument("--vocabulary-size", type=int, default=50000, help="with <S> </S> <UNK>")
    parser.add_argument("--backward", action="store_true", help="also backward models")
    parser.add_argument("--output", type=Path, help="JSON file to write the rows to")
    arguments = parser.parse_args()
    if arguments.order < 2 or arguments.vocabulary_size < 4:
        parser.error("--order must be at least 2, --vocabulary-size at least 4")
    start = time.perf_counter()
    vocabulary = make_vocabulary(read_words(arguments.train), arguments.vocabulary_size)
    train = encode(read_words(arguments.train), vocabulary)
    tests = {str(path): encode(read_words([path]), vocabulary) for path in arguments.test}
    for path, test in tests.items():
        if not len(test.ids):
            parser.error(f"{path} holds no sentence")
    print(f"{len(train.ids) - 2 * len(train.lengths):,} training words, {len(vocabulary):,} known")
    print(f"{'':<30}{'predictions':>11}{'<UNK>':>9}{'perplexity':>12}  text")
    rows = compare(train, tests, arguments.order, vocabulary, "forward")
    if arguments.backward:
        backward = compare(train, tests, arguments.order, vocabulary, "backward")
        rows = [*rows, *backward, *geometric_means(rows, backward)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{time.perf_counter() - start:,.0f} seconds, at most {memory:.1f} GB of memory")
    if arguments.output:
        arguments.output.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
