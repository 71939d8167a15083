"""Precision, recall and F1 of predicted entities, as CoNLL's `conlleval` counts them."""

from collections import Counter
from typing import Dict, List

from overrides import overrides

from elmo_plugin.corpora.tag_spans import bio_tags, tags_to_spans
from elmo_plugin.metrics.span_f1 import SpanF1


class EntityF1(SpanF1):
    """
    Counts entities as the scorer of the
    [CoNLL-2003 shared task](https://www.clips.uantwerpen.be/conll2003/ner/), `conlleval`, does.

    An entity is correct if its type, first and last word are. `tags_to_spans` documents how
    ill-formed sequences are read, and the tags `S`, `E`, `U` and `L`, which `conlleval` does not
    know. Token accuracy compares tags converted to BIO, so it does not depend on the scheme.
    AllenNLP's `SpanBasedF1Measure` differs: it needs to know the scheme, drops entities that are
    not well-formed in BIOUL, and has no accuracy.
    """

    columns = {
        "correct": lambda row: row.true_positives,
        "found": lambda row: row.predicted,
        "gold": lambda row: row.gold,
    }

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
            If the numbers of sentences differ.
        """
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            predicted_entities, gold_entities = map(tags_to_spans, (predicted_tags, gold_tags))
            self.add(
                [(entity.label, entity) for entity in predicted_entities],
                [(entity.label, entity) for entity in gold_entities],
            )
            num_tokens = len(gold_tags)
            pairs = zip(
                bio_tags(predicted_entities, num_tokens), bio_tags(gold_entities, num_tokens)
            )
            self._sums["", "tokens"] += num_tokens
            self._sums["", "correct"] += sum(one == other for one, other in pairs)

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            Token `accuracy`, `precision-overall`, `recall-overall` and `f1-measure-overall`, and
            the same three for every type seen so far, for example `f1-measure-PER`. Fractions, not
            percentages. Empty if there were no tokens.
        """
        if not sums["", "tokens"]:
            return {}
        return {"accuracy": sums["", "correct"] / sums["", "tokens"], **super().scores(sums)}

    @overrides
    def table(self) -> str:
        """The table of `conlleval`, see `SpanF1.table`."""
        sums = self.sums()
        correct, num_tokens = sums["", "correct"], sums["", "tokens"]
        accuracy = 100 * correct / max(num_tokens, 1)
        return f"{super().table()}\nAccuracy {accuracy:.2f} over {num_tokens} tokens."
