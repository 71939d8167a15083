"""Precision, recall and F1 of predicted entities, as CoNLL's `conlleval` counts them."""

from collections import Counter
from typing import Dict, List, Sequence

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.corpora.conll2003 import bio_tags, find_entities
from elmo_plugin.metrics.label_counts import LabelCounts, over_processes


@Metric.register("elmo-entity-f1")
class EntityF1(Metric):
    """
    Counts entities as the scorer of the
    [CoNLL-2003 shared task](https://www.clips.uantwerpen.be/conll2003/ner/), `conlleval`, does.

    An entity is correct if its type, first and last word are. `find_entities` documents how
    ill-formed sequences are read, and the tags `S`, `E`, `U` and `L`, which `conlleval` does not
    know. Token accuracy compares tags converted to BIO, so it does not depend on the scheme.
    AllenNLP's `SpanBasedF1Measure` differs: it needs to know the scheme, drops entities that are
    not well-formed in BIOUL, and has no accuracy.
    """

    def __init__(self) -> None:
        self._counts = LabelCounts()
        self._tokens: Counter = Counter()

    @overrides(check_signature=False)
    def __call__(self, predicted: List[Sequence[str]], gold: List[Sequence[str]]) -> None:
        """
        # Parameters

        predicted : `List[Sequence[str]]`
            The tags of each sentence, in any of the schemes.
        gold : `List[Sequence[str]]`
            The gold tags of the same sentences.

        # Raises

        `ValueError`
            If the numbers of sentences differ, or the numbers of tags of a sentence.
        """
        if len(predicted) != len(gold):
            raise ValueError(
                f"EntityF1 needs the gold tags of each sentence: {len(predicted)} sentences were "
                f"predicted, {len(gold)} are gold."
            )
        for number, (predicted_tags, gold_tags) in enumerate(zip(predicted, gold)):
            if len(predicted_tags) != len(gold_tags):
                raise ValueError(
                    f"EntityF1 compares tags token by token: sentence {number} of the batch has "
                    f"{len(predicted_tags)} predicted and {len(gold_tags)} gold tags."
                )
            found, wanted = find_entities(predicted_tags), find_entities(gold_tags)
            self._counts.add(
                *([(entity.label, entity) for entity in entities] for entities in (found, wanted))
            )
            num_tokens = len(gold_tags)
            pairs = zip(bio_tags(found, num_tokens), bio_tags(wanted, num_tokens))
            self._tokens[_ALL] += num_tokens
            self._tokens[_RIGHT] += sum(ours == theirs for ours, theirs in pairs)

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            Token `accuracy`, `precision-overall`, `recall-overall` and `f1-measure-overall`, and
            the same three for every type seen so far, for example `f1-measure-PER`; fractions, not
            percentages, summed over all processes. Empty if there were no tokens.
        """
        (tokens,) = over_processes([self._tokens])
        metrics = {}
        if tokens[_ALL]:
            metrics = {"accuracy": tokens[_RIGHT] / tokens[_ALL], **self._counts.scores()}
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
            "correct": lambda correct, found, gold: correct,
            "found": lambda correct, found, gold: found,
            "gold": lambda correct, found, gold: gold,
        }
        (tokens,) = over_processes([self._tokens])
        accuracy = 100 * tokens[_RIGHT] / max(tokens[_ALL], 1)
        last = f"Accuracy {accuracy:.2f} over {tokens[_ALL]} tokens."
        return "\n".join([*self._counts.table(columns), last])

    @overrides
    def reset(self) -> None:
        self._counts.reset()
        self._tokens.clear()


_ALL, _RIGHT = "all", "right"
