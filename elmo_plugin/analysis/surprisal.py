"""The surprisal of words under a biLM and its softmax."""

import math
from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Sequence

import numpy
import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.pretraining.next_word_loss import next_word_losses
from elmo_plugin.bilm.pretraining.perplexity import perplexity_of
from elmo_plugin.elmo.token_batches import map_in_batches
from elmo_plugin.util.errors import ConfigurationError

#: In `both`, the surprisal is the mean of the other two.
DIRECTIONS = ("forward", "backward", "both")
#: One nat in bits.
BITS = 1.0 / math.log(2.0)
# The first ids of a vocabulary.
_BEGIN_SENTENCE, _END_SENTENCE, _UNKNOWN = range(3)


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
        device = bilm.boundary_ids.device
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
            # In the order of the text, shape: (num_words + 1,)
            forward, backward = of_directions[:, part]
            ends = {"forward": float(forward[-1]), "backward": float(backward[0])}
            ends["both"] = (ends["forward"] + ends["backward"]) / 2.0
            surprisals = (forward[:-1], backward[1:], (forward[:-1] + backward[1:]) / 2.0)
            scores.append(SentenceScore(words, known, *surprisals, ends))
        return scores
