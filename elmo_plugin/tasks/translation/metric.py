"""BLEU by the library sacrebleu, and perplexity per token."""

from typing import Any, Dict, List

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.bilm.pretraining.perplexity import perplexity_of
from elmo_plugin.util.distributed import sum_over_processes
from elmo_plugin.util.errors import ConfigurationError


@Metric.register("elmo-translation")
class TranslationScores(Metric):
    """
    BLEU of a corpus ([Papineni et al. 2002](https://aclanthology.org/P02-1040/)) as computed by
    [sacrebleu](https://github.com/mjpost/sacrebleu) with its default settings, and the perplexity
    of the references.

    Memory does not grow with the number of sentences.

    # Raises

    `ConfigurationError`
        If sacrebleu is not installed.
    """

    def __init__(self) -> None:
        _sacrebleu()
        self._counts: List[int] = []
        self._nats, self._num_tokens = 0.0, 0
        self.reset()

    @overrides(check_signature=False)
    def __call__(self, hypotheses: List[str], references: List[str]) -> None:
        """
        # Parameters

        hypotheses, references : `List[str]`
            Translations and one reference for each, as text that sacrebleu splits into words.
        """
        # Only its counts are used; without the option it warns that its score is of one sentence.
        sentence_bleu = _sacrebleu().BLEU(effective_order=True)
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            found = sentence_bleu.sentence_score(hypothesis, [reference])
            lengths = [found.sys_len, found.ref_len]
            counts = [*found.counts, *found.totals, *lengths]
            self._counts = [one + other for one, other in zip(self._counts, counts)]

    def add_loss(self, nats: float, num_tokens: int) -> None:
        """
        # Parameters

        nats : `float`
            The negative log-likelihood of the references, summed over their tokens.
        num_tokens : `int`
            The number of these tokens; the end of a sentence counts as one.
        """
        self._nats += nats
        self._num_tokens += num_tokens

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            Over all processes: `BLEU`, from 0 to 100, if there were references, and `perplexity`
            per token, if there was a loss.
        """
        counts = [sum_over_processes(count) for count in self._counts]
        nats, num_tokens = map(sum_over_processes, (self._nats, self._num_tokens))
        if reset:
            self.reset()
        metrics = {}
        if any(counts):
            # "exp" is the default of sacrebleu's `corpus_score`, but not of `compute_bleu`.
            bleu = _sacrebleu().BLEU.compute_bleu(
                counts[:4], counts[4:8], *counts[8:], smooth_method="exp"
            )
            metrics["BLEU"] = bleu.score
        if num_tokens:
            metrics["perplexity"] = perplexity_of(nats / num_tokens)
        return metrics

    @overrides
    def reset(self) -> None:
        # Correct n-grams of 1 to 4 words, all n-grams, words of hypotheses, words of references.
        self._counts = [0] * 10
        self._nats, self._num_tokens = 0.0, 0


def _sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError as error:
        raise ConfigurationError(
            "elmo-translation needs the package sacrebleu: pip install 'elmo-plugin[translation]' "
            "or pip install sacrebleu."
        ) from error
    return sacrebleu
