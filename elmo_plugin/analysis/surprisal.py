"""The surprisal of words under a biLM and its softmax: of a text, and of minimal pairs."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Sequence

import numpy
import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.pretraining.language_model import Perplexity, perplexity_of
from elmo_plugin.bilm.pretraining.next_word_loss import next_word_losses
from elmo_plugin.corpora.minimal_pairs import MinimalPair
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.token_batches import map_in_batches, sentence_groups
from elmo_plugin.util.errors import ConfigurationError

#: In `both`, the surprisal is the mean of the other two.
DIRECTIONS = ("forward", "backward", "both")
#: One nat in bits.
BITS = 1.0 / math.log(2.0)
# The first ids of a vocabulary.
_BEGIN_SENTENCE, _END_SENTENCE, _UNKNOWN = range(3)
# Groups of minimal pairs.
_KINDS = ("set", "phenomenon", "field", "all")


@dataclass(frozen=True)
class SentenceScore:
    """
    The surprisals of a sentence, which are negative log-likelihoods in nats (section 3.1). The
    forward direction predicts each word from the words before it, and finally `</S>`. The backward
    direction predicts each word from the words after it, and finally `<S>`.
    """

    words: Sequence[str]
    #: Whether each word is in the vocabulary of the softmax. Other words are scored as `<UNK>`.
    known: List[bool]
    #: The surprisal of each word, shape `(num_words,)`; `both` is the mean of the two.
    forward: numpy.ndarray
    backward: numpy.ndarray
    both: numpy.ndarray
    #: The surprisal of `</S>` (`forward`) and of `<S>` (`backward`), and their mean (`both`).
    ends: Dict[str, float]

    def surprisal(self, direction: str) -> float:
        """The sum over the sentence in nats, including `<S>` or `</S>`."""
        return float(getattr(self, direction).sum()) + self.ends[direction]

    def perplexity(self, direction: str) -> float:
        """Per prediction: one for each word, and one for the boundary."""
        return perplexity_of(self.surprisal(direction) / (len(self.words) + 1))


class Scorer:
    """
    Computes the surprisal of words with a biLM and its full softmax. A sentence's scores do not
    depend on other sentences. `bilm` must be in evaluation mode, neither stateful nor forward-only.

    # Examples

        from elmo_plugin.analysis.surprisal import Scorer
        from elmo_plugin.bilm import load_bilm
        from elmo_plugin.bilm.files.softmax import find_softmax
        bilm = load_bilm("my-bilm/options.json", "my-bilm/weights.hdf5")
        scorer = Scorer(bilm, find_softmax("my-bilm/weights.hdf5", bilm.options))
        for score in scorer.score([["The", "play", "began", "."]]):
            print(score.forward, score.perplexity("both"))
    """

    def __init__(self, bilm: Bilm, softmax: SoftmaxWeights) -> None:
        self._bilm = bilm
        self._ids = {word: number for number, word in enumerate(softmax.words)}
        device = bilm.options_json.device
        self._weight = softmax.weight.detach().to(device, torch.float32)
        self._bias = softmax.bias.detach().to(device, torch.float32)

    def score(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 64
    ) -> Iterator[SentenceScore]:
        """Yields a score per sentence, in order. Memory and errors are as in `map_in_batches`."""
        return map_in_batches(self._score_batch, sentences, batch_size)

    @torch.inference_mode()
    def _score_batch(self, sentences: List[Sequence[str]]) -> List[SentenceScore]:
        device = self._weight.device
        layers = self._bilm(self._bilm.characters.batch_ids(sentences).to(device)).layers
        # Shape: (batch_size, num_tokens + 2, dim) each
        forward, backward = layers[-1].float().chunk(2, dim=-1)
        ids = [[self._ids.get(word, _UNKNOWN) for word in words] for words in sentences]
        lengths = torch.tensor([len(of_words) + 1 for of_words in ids], device=device)
        # Shape: (batch_size, num_tokens + 1)
        mask = torch.arange(forward.size(1) - 1, device=device) < lengths.unsqueeze(1)
        # Forward states predict the next token, backward states the previous one.
        before, after = forward[:, :-1][mask], backward[:, 1:][mask]
        targets = torch.tensor(
            [id_ for of_words in ids for id_ in (*of_words, _END_SENTENCE)]
            + [id_ for of_words in ids for id_ in (_BEGIN_SENTENCE, *of_words)],
            device=device,
        )
        losses = next_word_losses(torch.cat([before, after]), self._weight, self._bias, targets)
        scores, first = [], 0
        # Shape: (2, num_predictions)
        of_directions = losses.cpu().double().numpy().reshape(2, -1)
        if not numpy.isfinite(of_directions).all():
            raise ConfigurationError(
                "Expected finite surprisals, found NaN or infinity. The weights of the biLM or of "
                "its softmax are damaged."
            )
        for words, of_words in zip(sentences, ids):
            part = slice(first, first + len(words) + 1)
            first = part.stop
            known = [id_ != _UNKNOWN for id_ in of_words]
            # In the order of the text, shape: (num_words + 1,)
            forward, backward = of_directions[:, part]
            ends = {"forward": float(forward[-1]), "backward": float(backward[0])}
            ends["both"] = (ends["forward"] + ends["backward"]) / 2.0
            surprisals = (forward[:-1], backward[1:], (forward[:-1] + backward[1:]) / 2.0)
            scores.append(SentenceScore(words, known, *surprisals, ends))
        return scores


def rows_of_words(score: SentenceScore) -> List[List[str]]:
    """The head of a table, and a row for each word and boundary. Surprisals are in bits."""
    begin, end = (_in_bits(score.ends[name]) for name in ("backward", "forward"))
    rows = [["position", "word", "known", *DIRECTIONS], ["0", "<S>", "yes", "", begin, ""]]
    for position, (word, known) in enumerate(zip(score.words, score.known)):
        surprisals = (_in_bits(getattr(score, name)[position]) for name in DIRECTIONS)
        rows.append([str(position + 1), word, "yes" if known else "no", *surprisals])
    return [*rows, [str(len(score.words) + 1), "</S>", "yes", end, "", ""]]


def rows_of_sentence(score: SentenceScore) -> List[List[str]]:
    """The head of a table, and one row, with the sums of a sentence in bits."""
    sums = [_in_bits(score.surprisal(direction)) for direction in DIRECTIONS]
    perplexities = [f"{score.perplexity(direction):.4f}" for direction in DIRECTIONS]
    head = ["words", *DIRECTIONS, *(f"{direction}_perplexity" for direction in DIRECTIONS)]
    return [head, [str(len(score.words)), *sums, *perplexities]]


def _in_bits(nats: float) -> str:
    return f"{nats * BITS:.6f}"


@dataclass
class ScoredText:
    """How much of a text has been scored. An interrupted run continues from it."""

    num_lines: int = 0
    num_words: int = 0
    #: In each direction.
    num_predictions: int = 0
    text_sha256: str = ""
    #: The text's surprisal in each direction.
    nats: Dict[str, float] = field(default_factory=lambda: {"forward": 0.0, "backward": 0.0})

    def perplexity(self) -> Dict[str, float]:
        metric = Perplexity()
        for direction, nats in self.nats.items():
            metric(direction, nats, self.num_predictions)
        return metric.get_metric()


def score_text(
    scorer: Scorer,
    text: DigestedText,
    rows: Callable[[SentenceScore], List[List[str]]],
    done: ScoredText,
    commit: Callable[[str, Dict[str, Any]], object],
    location: str,
    batch_size: int = 64,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> None:
    """
    Scores the sentences of a text and skips empty lines. After a kill, the same call continues
    after the last commit and writes the same lines, because the batches are the same.

    `rows` is `rows_of_words` or `rows_of_sentence`; the number of the line stands before each row.
    `done` is the state of the last commit, updated in place, or `ScoredText()` for a new run.
    `commit` receives the next lines and the fields of `done` after them, for the last time at the
    end of the text; a text without words gets no commit. Raises `ConfigurationError`, which names
    the `location` of unfinished work, if the text no longer begins with the lines done.
    """
    sentences = text.sentences()
    text.skip(sentences, done.num_lines, done.text_sha256, location)
    on_progress(done.num_lines)
    for group in sentence_groups(sentences, batch_size):
        numbers = [line_number for line_number, words in group if words]
        scores = scorer.score([words for _, words in group if words], batch_size)
        lines = []
        for line_number, score in zip(numbers, scores):
            head, *cells = rows(score)
            if not done.num_predictions:
                lines.append(["line", *head])
            lines += [[str(line_number), *row] for row in cells]
            done.num_predictions += len(score.words) + 1
            for direction in done.nats:
                done.nats[direction] += score.surprisal(direction)
        done.num_lines, done.text_sha256 = text.num_lines, text.sha256
        done.num_words = text.num_tokens
        if done.num_predictions:
            # Work without a line would stay unfinished for ever.
            commit("".join("\t".join(line) + "\n" for line in lines), asdict(done))
        on_progress(len(group))


class PairAccuracy(NamedTuple):
    """How many pairs a group has, and in how many the good sentence is more likely."""

    #: `set`, `phenomenon`, `field` or `all`.
    kind: str
    name: str
    num_pairs: int
    #: The share of right pairs in each of `DIRECTIONS`. A tie is wrong, as in BLiMP.
    shares: List[float]


def pair_accuracies(
    scorer: Scorer,
    pairs: Sequence[MinimalPair],
    batch_size: int = 64,
    on_progress: Callable[[int], object] = lambda num_pairs: None,
) -> List[PairAccuracy]:
    """The accuracies of each set, phenomenon and field, and of all; `on_progress(1)` per pair."""
    scores = scorer.score((each for pair in pairs for each in (pair.good, pair.bad)), batch_size)
    groups: Dict[str, Dict[str, List[List[bool]]]] = {kind: {} for kind in _KINDS}
    for pair, good, bad in zip(pairs, scores, scores):
        right = [good.surprisal(name) < bad.surprisal(name) for name in DIRECTIONS]
        for kind, name in zip(_KINDS, (pair.uid, pair.phenomenon, pair.field, "all")):
            if name:
                groups[kind].setdefault(name, []).append(right)
        on_progress(1)
    return [
        PairAccuracy(kind, name, len(right), numpy.mean(right, axis=0).tolist())
        for kind in _KINDS
        for name, right in groups[kind].items()
    ]
