"""Finds word senses with each layer of a biLM: section 5.3, Table 5 of Peters et al. (2018)."""

from array import array
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import numpy
import torch

from elmo_plugin.analysis.features import SpannedSentence, compute_features
from elmo_plugin.analysis.representations import Representation
from elmo_plugin.corpora.word_senses import Lemma, SenseInstance, SenseSentence
from elmo_plugin.util.bootstrap import BootstrappedScore, bootstrap
from elmo_plugin.util.errors import ConfigurationError

ALL = "all"
#: The sense of each annotated word of the test sentences, in order; `None` for no answer.
Answers = List[Optional[str]]
# Rows in memory as float64 at once: so few that the allocator reuses the same pages.
_ROWS = 1024
# Cosines are equal if they round to the same: smaller differences are rounding errors.
_DECIMALS = 9


@dataclass(frozen=True)
class SenseScore:
    """
    F1, from 0 to 1, as in [Raganato et al. (2017)](https://aclanthology.org/E17-1010/): precision
    is over answers, recall over all words. An answer is correct if it is a gold sense.
    """

    num_correct: int
    num_answered: int
    num_words: int

    @property
    def f1(self) -> float:
        return 2 * self.num_correct / max(self.num_answered + self.num_words, 1)


class SenseProbe:
    """
    Gives a word the sense whose mean vector in the training set is nearest by cosine, among the
    senses of its lemma and part of speech. Ties go to the more frequent sense. Lemmas not in the
    training set get their first sense.

    RAM holds `test` and a vector per sense of its lemmas; `train` is streamed several times.
    `folder` holds vectors, which are reused if already there. Raises `ConfigurationError` if no
    lemma of `test` is annotated in `train`.
    """

    def __init__(
        self,
        train: Iterable[SenseSentence],
        test: Sequence[SenseSentence],
        first_senses: Mapping[Lemma, str],
        folder: Path,
    ) -> None:
        self._folder, self._first_senses = folder, first_senses
        #: The annotated words of the test sentences, with the names of their test sets.
        self.instances: List[Tuple[str, SenseInstance]] = [
            (sentence.corpus, instance) for sentence in test for instance in sentence.instances
        ]
        self._sentence_of = [n for n, sentence in enumerate(test) for _ in sentence.instances]
        self._num_sentences = len(test)
        lemmas = {instance.lemma for _, instance in self.instances}
        self._train, self._test = _SpannedSentences(train, lemmas), _SpannedSentences(test, lemmas)
        #: How often each sense occurs in training, for each test lemma annotated there.
        self.counts: Dict[Lemma, Counter] = {}
        self._numbers: Dict[Tuple[Lemma, str], int] = {}
        #: The number of sentences in both sets that get vectors.
        self.num_texts = sum(1 for _ in self._test)
        # For each annotation, the numbers of its vector in the training set and of its sense.
        self._vectors, self._senses = self._count()
        if not self.counts:
            examples = ", ".join(" ".join(lemma) for lemma in sorted(lemmas)[:3])
            raise ConfigurationError(
                "Expected annotated lemmas of the test set in the training set, found none of "
                f"{len(lemmas)} ({examples} ...). Check that "
                "both use the same names of parts of speech."
            )

    def _count(self) -> Tuple[numpy.ndarray, numpy.ndarray]:
        """Counts the senses of the training set, and numbers its vectors and senses."""
        vectors, senses = array("q"), array("q")
        numbers = self._numbers
        num_vectors = 0
        for _, instances in self._train.annotated():
            self.num_texts += 1
            for instance in instances:
                for sense in instance.senses:
                    vectors.append(num_vectors)
                    senses.append(numbers.setdefault((instance.lemma, sense), len(numbers)))
                num_vectors += 1
        of_senses = numpy.frombuffer(senses, dtype=numpy.int64)
        counts = numpy.bincount(of_senses, minlength=len(numbers)).tolist()
        for (lemma, sense), count in zip(numbers, counts):
            self.counts.setdefault(lemma, Counter())[sense] = count
        return numpy.frombuffer(vectors, dtype=numpy.int64), of_senses

    def first_senses(self) -> Answers:
        """The baseline that answers with the first sense."""
        return [self._first_senses.get(instance.lemma) for _, instance in self.instances]

    def most_frequent_senses(self) -> Answers:
        """The baseline: the most frequent sense in training, or the first sense if it has none."""
        # `most_common` keeps the order in which senses were counted first.
        best = {lemma: counts.most_common(1)[0][0] for lemma, counts in self.counts.items()}
        answers = zip(self.instances, self.first_senses())
        return [best.get(instance.lemma, first) for (_, instance), first in answers]

    def nearest_senses(
        self,
        representation: Representation,
        on_sentences: Callable[[int], object] = lambda num_sentences: None,
    ) -> Iterator[Tuple[str, Answers]]:
        """Yields each layer's name and answers. `on_sentences` goes to `compute_features`."""
        train, test = (
            compute_features(representation, texts, self._folder, on_sentences)
            for texts in (self._train, self._test)
        )
        for number, layer in enumerate(representation.layers):
            yield layer, self._answers(self._sums(train.layer(number)), test.layer(number))

    def _sums(self, vectors: numpy.ndarray) -> numpy.ndarray:
        """The sum of each sense's vectors, shape `(num_senses, dim)`, float64."""
        sums = torch.zeros(len(self._numbers), vectors.shape[1], dtype=torch.float64)
        for start in range(0, len(self._vectors), _ROWS):
            part = slice(start, start + _ROWS)
            chosen = torch.from_numpy(vectors[self._vectors[part]]).double()
            sums.index_add_(0, torch.from_numpy(self._senses[part]), chosen)
        return sums.numpy()

    def _answers(self, sums: numpy.ndarray, vectors: numpy.ndarray) -> Answers:
        rows_of: Dict[Lemma, List[int]] = {}
        for row, (_, instance) in enumerate(self.instances):
            rows_of.setdefault(instance.lemma, []).append(row)
        answers = self.first_senses()
        for lemma, counts in self.counts.items():
            # The most frequent first: of equally near senses, `argmax` takes the first. Sums have
            # the same cosine as means.
            senses = [sense for sense, _ in counts.most_common()]
            of_senses = sums[[self._numbers[lemma, sense] for sense in senses]]
            of_words = vectors[rows_of[lemma]].astype(numpy.float64)
            norms = (numpy.linalg.norm(each, axis=1) for each in (of_words, of_senses))
            products = numpy.outer(*norms)
            # The static vector of an unknown word is zero: all its cosines are 0.
            cosines = (of_words @ of_senses.T) / numpy.where(products > 0.0, products, 1.0)
            for row, nearest in zip(rows_of[lemma], cosines.round(_DECIMALS).argmax(axis=1)):
                answers[row] = senses[nearest]
        return answers

    def scores(self, answers: Answers) -> Dict[str, SenseScore]:
        """The scores of each test set, each part of speech, and `ALL`."""
        counts: Dict[str, List[int]] = {}
        for (corpus, instance), answer in zip(self.instances, answers):
            is_answered = answer is not None
            # A test set may also be called `all`.
            for group in dict.fromkeys((corpus, instance.lemma[1], ALL)):
                counted = counts.setdefault(group, [0, 0, 0])
                counted[0] += answer in instance.senses
                counted[1] += is_answered
                counted[2] += 1
        return {group: SenseScore(*counted) for group, counted in counts.items()}

    def f1(self, answers: Answers) -> BootstrappedScore:
        """The F1 over all words."""
        answered = zip(self.instances, answers)
        correct = [2 * (answer in instance.senses) for (_, instance), answer in answered]
        total = [1 + (answer is not None) for answer in answers]
        # Sentences without annotated words are drawn too, wherever they are.
        return bootstrap(
            *(numpy.bincount(self._sentence_of, of, self._num_sentences) for of in (correct, total))
        )


class _SpannedSentences:
    """Sentences with annotated words of `lemmas`: all words, and the annotated ones' spans."""

    def __init__(self, sentences: Iterable[SenseSentence], lemmas: Set[Lemma]) -> None:
        self._sentences, self._lemmas = sentences, lemmas

    def __iter__(self) -> Iterator[SpannedSentence]:
        for sentence, instances in self.annotated():
            words, spans = words_of(sentence.tokens)
            yield SpannedSentence(words, [spans[instance.position] for instance in instances])

    def annotated(self) -> Iterator[Tuple[SenseSentence, List[SenseInstance]]]:
        """Yields these sentences with their annotated words."""
        for sentence in self._sentences:
            instances = [each for each in sentence.instances if each.lemma in self._lemmas]
            if instances:
                yield sentence, instances


def words_of(tokens: Sequence[str]) -> Tuple[List[str], List[Tuple[int, int]]]:
    """Splits multi-word units at `_`. Returns the words, and each token's span `(start, end)`."""
    words: List[str] = []
    spans = []
    for token in tokens:
        start = len(words)
        words += [word for word in token.split("_") if word] or [token]
        spans.append((start, len(words)))
    return words, spans
