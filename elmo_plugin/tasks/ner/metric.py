from collections import Counter
from typing import Dict, List

from overrides import overrides

from elmo_plugin.corpora.tag_spans import bio_tags, tags_to_spans
from elmo_plugin.tasks.metrics import SpanF1, SummedMetric


class EntityF1(SpanF1):
    """
    Counts entities like [`conlleval`](https://www.clips.uantwerpen.be/conll2003/ner/) of
    CoNLL-2003: an entity is correct if its type, first and last word are. `tags_to_spans` documents
    how ill-formed sequences are read, and the tags `S`, `E`, `U` and `L`, which `conlleval` does
    not know. Accuracy compares tags converted to BIO. AllenNLP's `SpanBasedF1Measure` must know the
    scheme, drops ill-formed BIOUL entities, and has no accuracy.
    """

    columns = {
        "correct": lambda row: row.true_positives,
        "found": lambda row: row.predicted,
        "gold": lambda row: row.gold,
    }

    @overrides(check_signature=False)
    def __call__(self, predicted: List[List[str]], gold: List[List[str]]) -> None:
        """Counts the predicted and the gold tags of each sentence, in any of the schemes."""
        for sides in zip(predicted, gold, strict=True):
            entities = [tags_to_spans(tags) for tags in sides]
            self.add(*([(entity.label, entity) for entity in side] for side in entities))
            pairs = list(zip(*(bio_tags(side, len(sides[1])) for side in entities)))
            self._sums["", "tokens"] += len(pairs)
            self._sums["", "correct"] += sum(one == other for one, other in pairs)

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """Token `accuracy`, and the scores of `SpanF1`. Empty if there were no tokens."""
        if not sums["", "tokens"]:
            return {}
        return {"accuracy": sums["", "correct"] / sums["", "tokens"], **super().scores(sums)}

    @overrides
    def table(self) -> str:
        sums = self.sums()
        correct, num_tokens = sums["", "correct"], sums["", "tokens"]
        accuracy = 100 * correct / max(num_tokens, 1)
        return f"{super().table()}\nAccuracy {accuracy:.2f} over {num_tokens} tokens."


class TagAccuracy(SummedMetric):
    """The share of tokens with the right tag, for tags that mark no spans."""

    @overrides(check_signature=False)
    def __call__(self, predicted: List[List[str]], gold: List[List[str]]) -> None:
        for sides in zip(predicted, gold, strict=True):
            self._sums.update(one == other for one, other in zip(*sides, strict=True))

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """`accuracy`; empty if there were no tokens."""
        return {"accuracy": sums[True] / sums.total()} if sums else {}
