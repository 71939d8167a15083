"""Precision, recall and F1 of predicted entities, by the rules of CoNLL's `conlleval`."""

from collections import Counter
from typing import Dict, List, Optional, Sequence, Tuple

import torch.distributed as dist
from allennlp.common.util import is_distributed
from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.corpora.conll2003 import bio_tags, find_entities

OVERALL = "overall"
# Keys of the counts of tokens, which are no type of entity: a tag never holds a blank.
_TOKENS, _RIGHT_TOKENS = "all tokens", "right tokens"


def _scores(correct: int, predicted: int, gold: int) -> Tuple[float, float, float]:
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return precision, recall, f1


@Metric.register("elmo-entity-f1")
class EntityF1(Metric):
    """
    Counts entities as the scorer of the
    [CoNLL-2003 shared task](https://www.clips.uantwerpen.be/conll2003/ner/), `conlleval`, does.

    An entity is correct if its type, first and last word agree. `find_entities` says what
    ill-formed sequences mean. The accuracy is that of tokens, their tags written as BIO on both
    sides so that it does not hang on the scheme. AllenNLP's `SpanBasedF1Measure` differs: it has to
    be told the scheme, drops entities that are not well-formed in BIOUL, and gives no accuracy.
    """

    def __init__(self) -> None:
        self._correct: Counter = Counter()
        self._predicted: Counter = Counter()
        self._gold: Counter = Counter()
        self._tokens: Counter = Counter()

    @overrides(check_signature=False)
    def __call__(self, predicted: List[Sequence[str]], gold: List[Sequence[str]]) -> None:
        """
        # Parameters

        predicted : `List[Sequence[str]]`
            The tags of each sentence, in any of the schemes.
        gold : `List[Sequence[str]]`
            The right tags of the same sentences.

        # Raises

        `ValueError`
            If the two do not hold the same number of sentences, or of tags for one of them.
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
            self._correct.update(entity.label for entity in set(found) & set(wanted))
            self._predicted.update(entity.label for entity in found)
            self._gold.update(entity.label for entity in wanted)
            num_tokens = len(gold_tags)
            pairs = zip(bio_tags(found, num_tokens), bio_tags(wanted, num_tokens))
            self._tokens[_TOKENS] += num_tokens
            self._tokens[_RIGHT_TOKENS] += sum(ours == theirs for ours, theirs in pairs)

    def _counts(self) -> Tuple[Dict[str, Tuple[int, int, int]], Counter]:
        """Correct, predicted and gold entities, overall first; and tokens. Of all processes."""
        kinds = [self._correct, self._predicted, self._gold, self._tokens]
        if is_distributed():
            # Processes meet different types, so that the counts cannot be summed as one tensor.
            gathered: List[Optional[List[Counter]]] = [None] * dist.get_world_size()
            dist.all_gather_object(gathered, kinds)
            kinds = [sum(parts, Counter()) for parts in zip(*gathered)]
        *kinds, tokens = kinds
        labels = sorted(set().union(*kinds))
        counts = {label: tuple(kind[label] for kind in kinds) for label in labels}
        overall = tuple(sum(kind.values()) for kind in kinds)
        return {OVERALL: overall, **counts}, tokens

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `accuracy` of the tokens, `precision-overall`, `recall-overall` and
            `f1-measure-overall`, and the same three for every type seen so far, `f1-measure-PER`
            for instance; fractions, not percentages. Over all processes when there are several.
            Nothing when there were no tokens.
        """
        counts, tokens = self._counts()
        if not tokens[_TOKENS]:
            return {}
        metrics = {"accuracy": tokens[_RIGHT_TOKENS] / max(tokens[_TOKENS], 1)}
        for label, row in counts.items():
            precision, recall, f1 = _scores(*row)
            metrics[f"precision-{label}"] = precision
            metrics[f"recall-{label}"] = recall
            metrics[f"f1-measure-{label}"] = f1
        if reset:
            self.reset()
        return metrics

    def table(self) -> str:
        """
        # Returns

        `str`
            The counts and percentages of `conlleval`: a row for all entities and one for each
            type. Over all processes when there are several, all of which have to ask for it.
        """
        counts, tokens = self._counts()
        width = max(10, *map(len, counts))
        head = ("correct", "found", "gold", "prec.", "rec.", "F1")
        lines = [" " * width + " " + "".join(f"{name:>8}" for name in head)]
        for label, row in counts.items():
            percentages = "".join(f"{100 * score:8.2f}" for score in _scores(*row))
            name = label.capitalize() if label == OVERALL else label
            lines.append(f"{name:>{width}} " + "".join(f"{n:8d}" for n in row) + percentages)
        accuracy = 100 * tokens[_RIGHT_TOKENS] / max(tokens[_TOKENS], 1)
        lines.append(f"Accuracy {accuracy:.2f} over {tokens[_TOKENS]} tokens.")
        return "\n".join(lines)

    @overrides
    def reset(self) -> None:
        for kind in (self._correct, self._predicted, self._gold, self._tokens):
            kind.clear()
