"""
Predicts tags of words from each layer of a biLM: section 5.3, Table 6 of Peters et al. (2018).
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence

import numpy

from elmo_plugin.analysis.features import Features, SpannedSentence, compute_features
from elmo_plugin.analysis.representations import Representation
from elmo_plugin.analysis.softmax_regression import Classifier, fit, predict
from elmo_plugin.corpora.tagged_words import TaggedSentence
from elmo_plugin.util.bootstrap import BootstrappedScore, Difference, bootstrap
from elmo_plugin.util.errors import ConfigurationError, optional_package

MIX = "mix"
SPLITS = ("train", "dev", "test")
#: The penalty of `Objective`.
L2 = 1e-4
_MAX_ITERATIONS = 1000


@dataclass(frozen=True)
class Accuracy:
    """The share of words with the correct tag."""

    overall: BootstrappedScore
    #: The share among words not in the training set; `None` if there are none.
    unseen: Optional[float]


@dataclass(frozen=True)
class TagScore:
    """A row of the table."""

    representation: str
    layer: str
    dev: Accuracy
    test: Accuracy
    #: `None` for the baseline.
    classifier: Optional[Classifier]
    #: The accuracy on test minus the accuracy of the representation's previous layer.
    from_previous: Optional[Difference] = None


class TagProbe:
    """
    Fits linear classifiers of tags on frozen word vectors. `splits` are the sentences of `train`,
    `dev` and `test`; RAM holds them, about 170 bytes per token. `folder` holds vectors, which are
    reused if already there. Raises `ConfigurationError` if the training set has fewer than two
    tags.
    """

    def __init__(self, splits: Mapping[str, Sequence[TaggedSentence]], folder: Path) -> None:
        # A missing solver must be reported before vectors are computed.
        optional_package("scipy.optimize", "Fitting a probe")
        self._folder = folder
        self._sentences = {split: splits[split] for split in SPLITS}
        found = {tag for sentence in splits["train"] for tag in sentence.tags}
        if len(found) < 2:
            raise ConfigurationError(
                f"Expected at least two tags to learn, found {len(found)}: {', '.join(found)}."
            )
        #: The tags of the training set. Other tags in dev and test always count as errors.
        self.tags: List[str] = sorted(found)
        ids = {tag: number for number, tag in enumerate(self.tags)}
        self._gold = {
            split: numpy.array([ids.get(t, -1) for s in splits[split] for t in s.tags], dtype="i4")
            for split in SPLITS
        }
        seen = set(self._words("train"))
        self._is_unseen = {
            split: numpy.array([word not in seen for word in self._words(split)])
            for split in SPLITS
        }

    def _words(self, split: str) -> Iterator[str]:
        return chain.from_iterable(sentence.words for sentence in self._sentences[split])

    def most_frequent_tag(self) -> TagScore:
        """The baseline: a word's most frequent tag in training, or the most frequent of all."""
        counts: Dict[str, Counter] = {}
        tags = self._gold["train"].tolist()
        for word, tag in zip(self._words("train"), tags):
            counts.setdefault(word, Counter())[tag] += 1
        best = {word: _most_frequent(of_word) for word, of_word in counts.items()}
        default = _most_frequent(Counter(tags))
        dev, test = (
            self._accuracy(s, numpy.array([best.get(word, default) for word in self._words(s)]))
            for s in SPLITS[1:]
        )
        return TagScore("most frequent tag of each word", "", dev, test, None)

    def features(
        self,
        representation: Representation,
        on_progress: Callable[[int], object] = lambda num_sentences: None,
    ) -> Dict[str, Features]:
        """The vectors of the words of each split. `on_progress` is as in `compute_features`."""
        found = {}
        for split, sentences in self._sentences.items():
            # A span for each word.
            texts = [
                SpannedSentence(each.words, [(n, n + 1) for n in range(len(each.words))])
                for each in sentences
            ]
            found[split] = compute_features(representation, texts, self._folder, on_progress)
        return found

    def scores(
        self,
        representation: Representation,
        features: Mapping[str, Features],
        with_mix: bool = False,
        on_iteration: Callable[[int], object] = lambda num_iterations: None,
    ) -> Iterator[TagScore]:
        """
        Fits and evaluates a classifier on each layer. `with_mix` adds a classifier on the learned
        scalar mix of several layers. Calls `on_iteration(1)` after each iteration of the solver.
        """
        numbers = range(len(representation.layers))
        choices = {name: [number] for name, number in zip(representation.layers, numbers)}
        if with_mix and len(numbers) > 1:
            choices[MIX] = list(numbers)
        previous: Optional[BootstrappedScore] = None
        for name, chosen in choices.items():
            layers = {s: [features[s].layer(number) for number in chosen] for s in SPLITS}
            solver = (L2, _MAX_ITERATIONS, on_iteration)
            classifier = fit(layers["train"], self._gold["train"], len(self.tags), *solver)
            dev, test = (self._accuracy(s, predict(classifier, layers[s])) for s in SPLITS[1:])
            difference = None if previous is None else test.overall.minus(previous)
            yield TagScore(representation.name, name, dev, test, classifier, difference)
            previous = test.overall

    def _accuracy(self, split: str, predicted: numpy.ndarray) -> Accuracy:
        is_correct = predicted == self._gold[split]
        is_unseen = self._is_unseen[split]
        lengths = [len(sentence.words) for sentence in self._sentences[split]]
        sentence_of = numpy.repeat(numpy.arange(len(lengths)), lengths)
        correct = numpy.bincount(sentence_of, is_correct, minlength=len(lengths))
        return Accuracy(
            overall=bootstrap(correct, lengths),
            unseen=float(is_correct[is_unseen].mean()) if is_unseen.any() else None,
        )


def _most_frequent(counts: Counter) -> int:
    # At a tie, the first tag by name: ids are in the order of names.
    return min(counts, key=lambda tag: (-counts[tag], tag))
