"""BLEU by the library sacrebleu, and perplexity per token."""

from collections import Counter
from typing import Any, Dict, List

from overrides import overrides

from elmo_plugin.bilm.pretraining.perplexity import perplexity_of
from elmo_plugin.metrics.summed_metric import SummedMetric
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.optional import optional_package


class TranslationScores(SummedMetric):
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
        super().__init__()
        _sacrebleu()

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
            # Correct n-grams of 1 to 4 words, all n-grams, words of hypotheses, of references.
            counts = [*found.counts, *found.totals, found.sys_len, found.ref_len]
            self._sums.update(dict(enumerate(counts)))

    def add_loss(self, nats: float, num_tokens: int) -> None:
        """
        # Parameters

        nats : `float`
            The negative log-likelihood of the references, summed over their tokens.
        num_tokens : `int`
            The number of these tokens; the end of a sentence counts as one.
        """
        self._sums.update(nats=nats, tokens=num_tokens)

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            Over all processes: `BLEU`, from 0 to 100, if there were references, and `perplexity`
            per token, if there was a loss.
        """
        counts = [sums[number] for number in range(10)]
        metrics = {}
        if any(counts):
            # "exp" is the default of sacrebleu's `corpus_score`, but not of `compute_bleu`.
            bleu = _sacrebleu().BLEU.compute_bleu(
                counts[:4], counts[4:8], *counts[8:], smooth_method="exp"
            )
            metrics["BLEU"] = bleu.score
        if sums["tokens"]:
            metrics["perplexity"] = perplexity_of(sums["nats"] / sums["tokens"])
        return metrics


def _sacrebleu() -> Any:
    extra = "'elmo-plugin[translation]'"
    return optional_package("sacrebleu", "elmo-translation", extra, ConfigurationError)
