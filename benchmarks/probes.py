"""
Seconds of `elmo probe` on vectors that are on disk already, against the minimum of work for it.

    python benchmarks/probes.py
    python benchmarks/probes.py --sentences 1000 --output results.json

Needs no corpus. Sentences have 20 words with made-up vectors of one layer, in half precision in the
folder of `--cache`. `ours` is a probe of that layer, from the sentences to the scores. `peer` is:

- tags: reading the vectors into float32 in RAM, and 20 iterations of the same solver (L-BFGS), as
  many as ours;
- word senses: reading the vectors into float64 in RAM, and adding up those of each sense.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy
import torch
from common import Row, by_turns, measuring_parser, report
from scipy.optimize import minimize

from elmo_plugin.analysis import tag_probe
from elmo_plugin.analysis.features import Features
from elmo_plugin.analysis.tag_probe import L2, SPLITS, TagProbe
from elmo_plugin.analysis.word_senses import SenseProbe
from elmo_plugin.corpora.tagged_words import TaggedSentence
from elmo_plugin.corpora.word_senses import SenseInstance, SenseSentence

FLOOR = "<= 2x"
DIM, NUM_TAGS, LENGTH, ITERATIONS = 1024, 50, 20, 20


class MadeUp:
    """Noisy vectors around a centre per tag; the number after a word's hyphen is its tag."""

    name, layers, dim, fingerprint = "made up", ["layer"], DIM, "made up"

    def __init__(self) -> None:
        self._generator = numpy.random.default_rng(0)
        self._centres = self._generator.standard_normal((NUM_TAGS, DIM), dtype=numpy.float32)

    def embed(self, sentences: Sequence[Sequence[str]]) -> Iterator[numpy.ndarray]:
        for words in sentences:
            noise = self._generator.standard_normal((1, len(words), DIM), dtype=numpy.float32)
            yield 0.2 * self._centres[[int(word.split("-")[1]) for word in words]] + noise


def make_sentences(number: int) -> List[TaggedSentence]:
    generator = numpy.random.default_rng(1)
    tags = generator.integers(NUM_TAGS, size=(number, LENGTH))
    forms = generator.integers(1000, size=(number, LENGTH))
    return [
        TaggedSentence(
            tuple(f"w{form}-{tag}" for form, tag in zip(*row)), tuple(str(tag) for tag in row[1])
        )
        for row in zip(forms, tags)
    ]


class Tags:
    """A probe of tags."""

    def __init__(self, number: int, folder: Path) -> None:
        sentences = make_sentences(number)
        tenth = max(number // 10, 1)
        self.folder = folder
        self.splits = {"train": sentences, "dev": sentences[:tenth], "test": sentences[-tenth:]}
        probe = TagProbe(self.splits, folder)
        self.features = probe.features(MadeUp())
        labels = [probe.tags.index(tag) for sentence in sentences for tag in sentence.tags]
        self.labels = torch.tensor(labels).unsqueeze(1)

    def ours(self, turn: int) -> None:
        tag_probe._MAX_ITERATIONS = ITERATIONS
        probe = TagProbe(self.splits, self.folder)
        representation = MadeUp()
        list(probe.scores(representation, probe.features(representation)))

    def peer(self, turn: int) -> None:
        train, dev, test = (read(self.features[split], torch.float32) for split in SPLITS)
        train = (train - train.mean(dim=0)) / train.std(dim=0)
        size = DIM * NUM_TAGS

        def objective(parameters: numpy.ndarray) -> Tuple[float, numpy.ndarray]:
            flat = torch.from_numpy(parameters).float()
            weights, bias = flat[:size].view(DIM, NUM_TAGS), flat[size:]
            log_probabilities = torch.addmm(bias, train, weights).log_softmax(dim=1)
            loss = -log_probabilities.gather(1, self.labels).mean()
            d_logits = log_probabilities.exp_()
            d_logits[torch.arange(len(train)), self.labels[:, 0]] -= 1
            d_logits /= len(train)
            gradient = torch.cat([(train.T @ d_logits + L2 * weights).flatten(), d_logits.sum(0)])
            return float(loss + 0.5 * L2 * weights.square().sum()), gradient.double().numpy()

        start = numpy.zeros(size + NUM_TAGS)
        options = {"maxiter": ITERATIONS, "ftol": 0.0}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        weights = torch.from_numpy(found.x).float()
        for vectors in (dev, test):
            (vectors @ weights[:size].view(DIM, NUM_TAGS) + weights[size:]).argmax(dim=1)


class Senses:
    """A probe of word senses. Every word is annotated, and every lemma has three senses."""

    def __init__(self, tags: Tags) -> None:
        self.train = [annotated(sentence) for sentence in tags.splits["train"]]
        self.test = [annotated(sentence) for sentence in tags.splits["dev"]]
        self.folder, self.features = tags.folder, tags.features["train"]
        instances = [instance for sentence in self.train for instance in sentence.instances]
        numbers: Dict[Any, int] = {}
        senses = [numbers.setdefault((i.lemma, i.senses), len(numbers)) for i in instances]
        self.senses, self.num_senses = torch.tensor(senses), len(numbers)

    def ours(self, turn: int) -> None:
        probe = SenseProbe(self.train, self.test, {}, self.folder)
        for _, answers in probe.nearest_senses(MadeUp()):
            probe.scores(answers)

    def peer(self, turn: int) -> None:
        vectors = read(self.features, torch.float64)
        sums = torch.zeros(self.num_senses, DIM, dtype=torch.float64)
        sums.index_add_(0, self.senses, vectors)


def annotated(sentence: TaggedSentence) -> SenseSentence:
    instances = tuple(
        SenseInstance(position, (word.split("-")[0], "NOUN"), (f"sense%{int(tag) % 3}",))
        for position, (word, tag) in enumerate(zip(sentence.words, sentence.tags))
    )
    return SenseSentence("made up", sentence.words, instances)


def read(features: Features, dtype: torch.dtype) -> torch.Tensor:
    """The vectors of the only layer, shape `(num_rows, dim)`."""
    return torch.from_numpy(features.layer(0)).to(dtype)


def measure(number: int, turns: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        tags = Tags(number, Path(directory))
        for what, probe in (("tags", tags), ("word senses", Senses(tags))):
            seconds = by_turns({"ours": probe.ours, "peer": probe.peer}, turns)
            yield Row(
                f"Probe of {what}, {number * LENGTH:,} words, {DIM:,} numbers each",
                "s",
                statistics.median(seconds["ours"]),
                statistics.median(seconds["peer"]),
                floor=FLOOR,
            )


def main() -> None:
    parser = measuring_parser(__doc__, turns=3)
    parser.add_argument("--sentences", type=int, default=5000, help="default 5000")
    arguments = parser.parse_args()
    report(measure(arguments.sentences, arguments.turns), arguments.output)


if __name__ == "__main__":
    main()
