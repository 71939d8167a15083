"""Precision, recall and F1 of predicted entities, as CoNLL's `conlleval` counts them."""

from collections import Counter
from typing import Dict, List

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.corpora.tag_spans import bio_tags, tags_to_spans
from elmo_plugin.metrics.span_counts import SpanCounts, aligned_tags, sum_counters


@Metric.register("elmo-entity-f1")
class EntityF1(Metric):
    """
    Counts entities as the scorer of the
    [CoNLL-2003 shared task](https://www.clips.uantwerpen.be/conll2003/ner/), `conlleval`, does.

    An entity is correct if its type, first and last word are. `tags_to_spans` documents how
    ill-formed sequences are read, and the tags `S`, `E`, `U` and `L`, which `conlleval` does not
    know. Token accuracy compares tags converted to BIO, so it does not depend on the scheme.
    AllenNLP's `SpanBasedF1Measure` differs: it needs to know the scheme, drops entities that are
    not well-formed in BIOUL, and has no accuracy.
    """

    def __init__(self) -> None:
        self._counts = SpanCounts()
        self._tokens: Counter = Counter()

    @overrides(check_signature=False)
    def __call__(self, predicted: List[List[str]], gold: List[List[str]]) -> None:
        """
        # Parameters

        predicted : `List[List[str]]`
            The tags of each sentence, in any of the schemes.
        gold : `List[List[str]]`
            The gold tags of the same sentences.

        # Raises

        `ValueError`
            If the numbers of sentences differ, or the numbers of tags of a sentence.
        """
        for predicted_tags, gold_tags in aligned_tags(predicted, gold):
            predicted_entities, gold_entities = map(tags_to_spans, (predicted_tags, gold_tags))
            self._counts.add(
                [(entity.label, entity) for entity in predicted_entities],
                [(entity.label, entity) for entity in gold_entities],
            )
            num_tokens = len(gold_tags)
            pairs = zip(
                bio_tags(predicted_entities, num_tokens), bio_tags(gold_entities, num_tokens)
            )
            self._tokens["all"] += num_tokens
            self._tokens["correct"] += sum(one == other for one, other in pairs)

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            Token `accuracy`, `precision-overall`, `recall-overall` and `f1-measure-overall`, and
            the same three for every type seen so far, for example `f1-measure-PER`. Fractions, not
            percentages, from the counts of all processes. Empty if there were no tokens.
        """
        (tokens,) = sum_counters([self._tokens])
        metrics = {}
        if tokens["all"]:
            metrics = {"accuracy": tokens["correct"] / tokens["all"], **self._counts.scores()}
        if reset:
            self.reset()
        return metrics

    def table(self) -> str:
        """
        # Returns

        `str`
            The table of `conlleval`: a row for all entities and one for each type. Counts are
            summed over all processes, so every process must call this.
        """
        columns = {
            "correct": lambda row: row.true_positives,
            "found": lambda row: row.predicted,
            "gold": lambda row: row.gold,
        }
        (tokens,) = sum_counters([self._tokens])
        accuracy = 100 * tokens["correct"] / max(tokens["all"], 1)
        last = f"Accuracy {accuracy:.2f} over {tokens['all']} tokens."
        return "\n".join([*self._counts.table(columns), last])

    @overrides
    def reset(self) -> None:
        self._counts.reset()
        self._tokens.clear()
