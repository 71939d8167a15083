"""What a corpus holds, and what of it may harm a model that is trained on it."""

import re
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from typing import Any, Callable, Dict, Iterable, Iterator, List

from allennlp.data import Instance
from allennlp.data.fields import LabelField, ListField, SequenceLabelField, TextField

from elmo_plugin.corpora.tag_spans import is_span_tag
from elmo_plugin.tasks.reader import TaskReader
from elmo_plugin.util.word_vectors import vector_lines

# Labels of fewer instances or spans are hardly learnt.
_RARE = 10
# Other tags are likely mistakes if so many are of spans.
_NEARLY_ALL = 0.95
_MOST_WORDS = 20
# The first tag of a span.
_FIRST = re.compile(r"[BU]-(.+)")


@dataclass
class CorpusSummary:
    """RAM grows with the distinct words and with 8 bytes for each distinct instance."""

    num_instances: int = 0
    num_empty: int = 0
    num_unlabelled: int = 0
    #: The most words of an instance.
    longest: int = 0
    #: `spans` or `plain`, if words have labels.
    tags: str = ""
    #: Counts of words and of labels. Spans count, not their tags.
    words: Counter = field(default_factory=Counter)
    labels: Counter = field(default_factory=Counter)
    #: Counts of digests of the inputs, without labels.
    inputs: Counter = field(default_factory=Counter)
    #: The texts of the first instance that has words, by field, cut to `_MOST_WORDS`.
    example: Dict[str, str] = field(default_factory=dict)

    def add(self, instance: Instance, reader: TaskReader) -> None:
        texts = {name: _words(instance[name]) for name in reader.text_fields}
        words = list(chain.from_iterable(texts.values()))
        if words and not self.example:
            self.example = {name: " ".join(text[:_MOST_WORDS]) for name, text in texts.items()}
        self.num_instances += 1
        self.num_empty += not words
        self.num_unlabelled += reader.gold_field not in instance.fields
        self.longest = max(self.longest, len(words))
        self.words.update(words)
        if isinstance(instance.fields.get(reader.gold_field), SequenceLabelField):
            self.tags = "spans" if reader.has_spans else "plain"
        self.labels.update(_labels(instance, reader))
        self.inputs[_digest(instance, texts, reader.gold_field)] += 1


def summarise(
    instances: Iterable[Instance], reader: TaskReader, advance: Callable[[int], Any]
) -> CorpusSummary:
    """Reads instances as a stream, and calls `advance` with 1 after each."""
    summary = CorpusSummary()
    for instance in instances:
        summary.add(instance, reader)
        advance(1)
    return summary


def shares_without_vectors(
    path: str, parts: Iterable[CorpusSummary], lowercase: bool
) -> List[float]:
    """The share of the running words of each corpus that a file of word vectors lacks."""
    counts: List[Counter] = []
    for part in parts:
        counts.append(Counter())
        for word, number in part.words.items():
            counts[-1][word.lower() if lowercase else word] += number
    totals = [max(1, of_part.total()) for of_part in counts]
    for _, line in vector_lines(path):
        word = line.partition(" ")[0]
        for of_part in counts:
            of_part.pop(word, None)
    return [of_part.total() / total for of_part, total in zip(counts, totals)]


def warnings_about(parts: Dict[str, CorpusSummary]) -> Iterator[str]:
    """A sentence for each thing to look at. `parts` are `train` and perhaps `dev` and `test`."""
    train = parts["train"]
    rare = [name for name, number in train.labels.items() if number < _RARE]
    if rare:
        yield f"fewer than {_RARE} examples in train have each of these labels: {_listed(rare)}."
    if len(train.labels) == 1 and train.tags != "spans":
        yield f"train has only the label {_listed(list(train.labels))}: there is nothing to learn."
    tags = sum((part.labels for part in parts.values()), Counter())
    odd = [tag for tag in tags if not is_span_tag(tag)]
    share = 1 - sum(tags[tag] for tag in odd) / max(1, tags.total())
    if train.tags == "plain" and odd and share >= _NEARLY_ALL and len(tags) > len(odd) + 1:
        yield f"{share:.1%} of the tags are of spans, but {odd[0]} is not, so all are plain."
    for name, part in parts.items():
        of = f"of {part.num_instances:,} instances of {name}"
        repeated = part.num_instances - len(part.inputs)
        shared = sum(n for key, n in part.inputs.items() if key in train.inputs)
        unknown = sorted(part.labels.keys() - train.labels.keys())
        if part.num_empty:
            yield f"{part.num_empty:,} {of} have no words."
        if part.num_unlabelled:
            yield f"{part.num_unlabelled:,} {of} have no label, and teach or measure nothing."
        if repeated:
            yield f"{repeated:,} {of} repeat another one."
        if shared and name != "train":
            yield f"{shared:,} {of} are also in train, so its scores are too good."
        if unknown:
            yield f"train has no example of these labels of {name}: {_listed(unknown)}."


def _listed(names: List[str], most: int = 8) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _words(text: Any) -> List[str]:
    """The words of a text, or of a list of texts."""
    if isinstance(text, ListField):
        return [word for each in text for word in _words(each)]
    return [token.text for token in text.tokens] if isinstance(text, TextField) else []


def _labels(instance: Instance, reader: TaskReader) -> Iterator[str]:
    label = instance.fields.get(reader.gold_field)
    if isinstance(label, LabelField):
        # A label with a fixed index has its name in the metadata.
        is_name = isinstance(label.label, str)
        yield label.label if is_name else instance["metadata"].metadata["label"]
    elif isinstance(label, SequenceLabelField):
        firsts = map(_FIRST.fullmatch, label.labels)
        yield from (each[1] for each in firsts if each) if reader.has_spans else label.labels


def _digest(instance: Instance, texts: Dict[str, List[str]], gold_field: str) -> int:
    """Of the texts and of what else the model reads of tokens, such as the mark of a predicate."""
    inputs = []
    for name, each in instance.fields.items():
        if name in texts:
            inputs.append("\0".join(texts[name]))
        elif isinstance(each, SequenceLabelField) and name != gold_field:
            inputs.append(" ".join(map(str, each.labels)))
    return int.from_bytes(blake2b("\1".join(inputs).encode(), digest_size=8).digest(), "big")
