import json
import math
import random
import runpy
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Dict, List, Sequence

import numpy
import pytest

# An installed package owns the name `benchmarks`.
SCRIPT = Path(__file__).parent.parent / "benchmarks" / "ngram_perplexity.py"
ngrams = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
ORDER = 4


class SlowKneserNey:
    """Interpolated modified Kneser-Ney smoothing in dictionaries, one word at a time."""

    def __init__(self, sentences: List[List[str]], order: int, words: Sequence[str]) -> None:
        self.order, self.num_outcomes = order, len(words) - 1
        counts: Dict[tuple, int] = Counter()
        for sentence in sentences:
            for end in range(1, len(sentence)):
                for start in range(max(0, end - order + 1), end + 1):
                    counts[tuple(sentence[start : end + 1])] += 1
        before = defaultdict(set)
        for ngram in counts:
            before[ngram[1:]].add(ngram[0])
        boundary = sentences[0][0]
        self.followers: Dict[tuple, Dict[str, int]] = defaultdict(dict)
        frequencies = [Counter() for _ in range(order)]
        for ngram, count in counts.items():
            whole = len(ngram) == order or ngram[0] == boundary
            adjusted = count if whole else len(before[ngram])
            self.followers[ngram[:-1]][ngram[-1]] = adjusted
            frequencies[len(ngram) - 1][adjusted] += 1
        self.discounts = [self.estimate(frequency) for frequency in frequencies]

    def estimate(self, n: Dict[int, int]) -> List[float]:
        if all(n[count] for count in (1, 2, 3, 4)):
            y = n[1] / (n[1] + 2 * n[2])
            estimated = [0.0] + [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
            if all(0 <= discount <= k for k, discount in enumerate(estimated)):
                return estimated
        return [0.0, 0.5, 1.0, 1.5]

    def probability(self, word: str, context: tuple) -> float:
        context = context[-(self.order - 1) :]
        shorter = self.probability(word, context[1:]) if context else 1 / self.num_outcomes
        followers = self.followers.get(context)
        if not followers:
            return shorter
        discounts = self.discounts[len(context)]
        total = sum(followers.values())
        saved = sum(discounts[min(count, 3)] for count in followers.values())
        count = followers.get(word, 0)
        return (count - discounts[min(count, 3)]) / total + saved / total * shorter


def make_sentences(seed: int, number: int) -> List[List[str]]:
    """Words that depend on the word before, some rare."""
    generator = random.Random(seed)
    sentences = []
    for _ in range(number):
        last, sentence = 0, []
        for _ in range(generator.randint(1, 9)):
            last = int(60 * generator.random() ** 3 + last * generator.choice([0, 0, 1])) % 60
            sentence.append(f"w{last}")
        sentences.append(sentence)
    return sentences


@pytest.fixture(scope="module", params=["forward", "backward"])
def both(request):
    """The training text as words with boundaries, the vocabulary, the model, and the slow one."""
    sentences = make_sentences(0, 300)
    vocabulary = ngrams.make_vocabulary(sentences, 40)
    text = ngrams.encode(sentences, vocabulary)
    step = 1 if request.param == "forward" else -1
    known = [
        ["<S>", *(word if word in vocabulary else "<UNK>" for word in words), "</S>"][::step]
        for words in sentences
    ]
    model = ngrams.KneserNey(text if step == 1 else text.reversed(), ORDER, len(vocabulary))
    return step, vocabulary, model, SlowKneserNey(known, ORDER, list(vocabulary))


def test_probabilities_are_those_of_the_slow_model(both):
    step, vocabulary, model, slow = both
    sentences = make_sentences(1, 40)
    test = ngrams.encode(sentences, vocabulary)
    expected = []
    for words in sentences[::step]:
        words = [word if word in vocabulary else "<UNK>" for word in words]
        words = ["<S>", *words, "</S>"][::step]
        expected += [slow.probability(words[i], tuple(words[:i])) for i in range(1, len(words))]
    actual = model.probabilities(test if step == 1 else test.reversed())
    numpy.testing.assert_allclose(actual, expected, rtol=1e-9)


def test_most_frequent_words_are_known_and_those_written_like_boundaries_unknown():
    sentences = [["b", "a", "c"], ["c", "<S>", "<S>", "d"]]
    # Ties go by word.
    assert list(ngrams.make_vocabulary(sentences, 5)) == ["<S>", "</S>", "<UNK>", "c", "a"]
    vocabulary = ngrams.make_vocabulary([["a"]], 50)
    text = ngrams.encode([["a", "<S>"], ["</S>"]], vocabulary)
    assert text.ids.tolist() == [0, 3, 2, 1, 0, 2, 1]
    assert text.lengths.tolist() == [4, 3]


def test_an_unknown_word_in_the_test_alone_makes_the_unigram_infinite():
    vocabulary = ngrams.make_vocabulary([["a", "b", "c"]], 50)
    train, test = (ngrams.encode([words], vocabulary) for words in (["a", "b", "c"], ["a", "x"]))
    unigram, kneser_ney = ngrams.compare(train, {"test": test}, 2, vocabulary, "forward")
    assert unigram["perplexity"] == math.inf
    assert 1 < kneser_ney["perplexity"] < 50
    assert (kneser_ney["predictions"], kneser_ney["unknown"]) == (3, 1)
    assert ngrams.perplexity_of(numpy.array([0.5, 0.125])) == pytest.approx(4.0)


def test_rows_are_written_for_both_directions_and_their_mean(monkeypatch, tmp_path):
    lines = [" ".join(words) + "\n" for words in make_sentences(0, 100)]
    (tmp_path / "train.txt").write_text("".join(lines[:80]))
    (tmp_path / "test.txt").write_text("\n" + "".join(lines[80:]))
    files = ["--train", str(tmp_path / "train.txt"), "--test", str(tmp_path / "test.txt")]
    options = ["--order", "3", "--backward", "--output", str(tmp_path / "rows.json")]
    monkeypatch.setattr("sys.argv", ["ngram_perplexity.py", *files, *options])
    ngrams.main()
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["direction"] for row in rows[1::2]] == ["forward", "backward", "both"]
    assert {row["model"] for row in rows[1::2]} == {"Kneser-Ney 3-gram"}
    forward, backward, both = (row["perplexity"] for row in rows[1::2])
    assert both == pytest.approx(math.sqrt(forward * backward))
    num_words = sum(len(line.split()) for line in lines[80:])
    assert {row["predictions"] for row in rows} == {num_words + 20}
