"""The surprisal of words under a biLM and its softmax."""

import math
from dataclasses import dataclass, field
from html import escape
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

import numpy
import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.pretraining.language_model import perplexity_of
from elmo_plugin.bilm.pretraining.next_word_loss import next_word_losses
from elmo_plugin.elmo.token_batches import map_in_batches
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.html import table

#: In `both`, the surprisal is the mean of the other two; `SentenceScore.top_k` has another formula.
DIRECTIONS = ("forward", "backward", "both")
#: The value of one nat in each unit.
UNITS = {"bits": 1.0 / math.log(2.0), "nats": 1.0}
# The first ids of a vocabulary.
_NUM_SPECIALS = 3
_BEGIN_SENTENCE, _END_SENTENCE, _UNKNOWN = range(_NUM_SPECIALS)
# Positions whose probabilities of all words are in memory at once.
_WORDS_AT_ONCE = 64

#: Words and their probabilities, the most probable first.
TopK = List[Tuple[str, float]]


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
    #: For each direction, the most probable words `w` at each position, if requested, without
    #: `<S>`, `</S>` and `<UNK>`. Unlike the surprisal, the probability of `both` is not a mean. It
    #: is p(w | left) p(w | right) / p(w), renormalised without these three: Bayes' rule if left and
    #: right are independent given `w`. p(w) is the frequency of `w` in the training text, uniform
    #: if the softmax has no counts.
    top_k: Dict[str, List[TopK]] = field(default_factory=dict)

    def surprisal(self, direction: str) -> float:
        """The sum over the sentence in nats, including `<S>` or `</S>`."""
        return float(getattr(self, direction).sum()) + self.ends[direction]

    def perplexity(self, direction: str) -> float:
        """Per prediction: one for each word, and one for the boundary."""
        return perplexity_of(self.surprisal(direction) / (len(self.words) + 1))

    def _repr_html_(self) -> str:
        rows = [
            (escape(word), *(f"{surprisal:.2f}" for surprisal in of_word))
            for word, *of_word in zip(self.words, self.forward, self.backward, self.both)
        ]
        rows.append(("perplexity", *(f"{self.perplexity(name):.1f}" for name in DIRECTIONS)))
        return table(("surprisal in nats", *DIRECTIONS), rows)


class Scorer:
    """
    Computes the surprisal of words with a biLM and its full softmax. A sentence's scores do not
    depend on other sentences. `bilm` must be in evaluation mode, neither stateful nor forward-only.
    `top_k` is the number of most probable words to find at each position. If it is not 0, RAM also
    holds the words found, and about 1,000 bytes per word of the vocabulary.

    # Examples

        from elmo_plugin.analysis.surprisal import Scorer
        from elmo_plugin.bilm import load_bilm
        from elmo_plugin.bilm.files.softmax import find_softmax
        bilm = load_bilm("my-bilm/options.json", "my-bilm/weights.hdf5")
        scorer = Scorer(bilm, find_softmax("my-bilm/weights.hdf5", bilm.options))
        for score in scorer.score([["The", "play", "began", "."]]):
            print(score.forward, score.perplexity("both"))
    """

    def __init__(self, bilm: Bilm, softmax: SoftmaxWeights, top_k: int = 0) -> None:
        self._bilm = bilm
        self._words = softmax.words
        self._top_k = min(top_k, len(softmax.words) - _NUM_SPECIALS)
        self._ids = {word: number for number, word in enumerate(softmax.words)}
        device = bilm.boundary_ids.device
        # Without counts, all words are equally frequent.
        counts = torch.tensor(softmax.counts or [1] * len(softmax.words), device=device)
        self._log_counts = counts[_NUM_SPECIALS:].clamp_min(1).log()
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
        of_directions = losses.double().cpu().numpy().reshape(2, -1)
        if not numpy.isfinite(of_directions).all():
            raise ConfigurationError(
                "Expected finite surprisals, found NaN or infinity. The weights of the biLM or of "
                "its softmax are damaged."
            )
        for words, of_words in zip(sentences, ids):
            part = slice(first, first + len(words) + 1)
            first = part.stop
            known = [id_ != _UNKNOWN for id_ in of_words]
            top_k = self._top_k_words(before[part][:-1], after[part][1:])
            # In the order of the text, shape: (num_words + 1,)
            forward, backward = of_directions[:, part]
            ends = {"forward": float(forward[-1]), "backward": float(backward[0])}
            ends["both"] = (ends["forward"] + ends["backward"]) / 2.0
            surprisals = (forward[:-1], backward[1:], (forward[:-1] + backward[1:]) / 2.0)
            scores.append(SentenceScore(words, known, *surprisals, ends, top_k))
        return scores

    def _top_k_words(self, before: torch.Tensor, after: torch.Tensor) -> Dict[str, List[TopK]]:
        """From the hidden states before and after each word, shape `(num_words, dim)` each."""
        if not self._top_k:
            return {}
        found: Dict[str, List[TopK]] = {direction: [] for direction in DIRECTIONS}
        for hidden in zip(before.split(_WORDS_AT_ONCE), after.split(_WORDS_AT_ONCE)):
            # Shape: (at most 64, num_words in the vocabulary)
            forward, backward = (
                torch.addmm(self._bias, states, self._weight.t()).log_softmax(dim=1)
                for states in hidden
            )
            forward, backward = forward[:, _NUM_SPECIALS:], backward[:, _NUM_SPECIALS:]
            both = (forward + backward - self._log_counts).log_softmax(dim=1)
            for direction, log_probabilities in zip(DIRECTIONS, (forward, backward, both)):
                best, ids = log_probabilities.exp().topk(self._top_k)
                found[direction] += [
                    [(self._words[id_ + _NUM_SPECIALS], value) for value, id_ in zip(*row)]
                    for row in zip(best.tolist(), ids.tolist())
                ]
        return found
