from itertools import islice
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
#: The number of a line, and its words.
Sentence = Tuple[int, Tuple[str, ...]]

# Tokens in a batch, including padding; a longer sentence is a batch of its own. On a GPU, a step of
# many sentences takes hardly longer than one of few.
MAX_TOKENS = 8192
_MAX_TOKENS_ON_GPU = 65_536
# The sentences of this many batches are sorted by length together, which saves padding.
BATCHES_AHEAD = 16
# A group of sentences ends at this number of tokens.
_TOKENS_PER_GROUP = 32_768


def map_in_batches(
    function: Callable[[List[Sequence[str]]], Sequence[Result]],
    sentences: Iterable[Sequence[str]],
    batch_size: int,
    sort: bool = True,
    device_type: str = "cpu",
) -> Iterator[Result]:
    """
    Applies a function to batches of sentences (lists of words) and yields its results in the order
    of the sentences. At most `16 * batch_size` sentences and their results are in memory. A batch
    has sentences of similar length, or consecutive ones if `sort` is false; `token_batches` bounds
    its size. For errors see `embed_sentences`.
    """
    if batch_size < 1:
        raise ValueError(f"Expected a `batch_size` above 0, found {batch_size}.")
    remaining = _checked(sentences)
    while window := list(islice(remaining, BATCHES_AHEAD * batch_size)):
        order: Sequence[int] = range(len(window))
        if sort:
            order = sorted(order, key=lambda number: len(window[number]))
        results: Dict[int, Result] = {}
        lengths = [len(window[number]) for number in order]
        for batch in token_batches(lengths, batch_size, device_type):
            numbers = order[batch]
            results.update(zip(numbers, function([window[number] for number in numbers])))
        yield from (results.pop(number) for number in range(len(window)))


def token_batches(
    lengths: Sequence[int], batch_size: Optional[int] = None, device_type: str = "cpu"
) -> Iterator[slice]:
    """
    Divides sentences of these lengths into batches: at most `batch_size` sentences and 8,192 tokens
    with padding (65,536 if `device_type` is not `cpu`), or one longer sentence.
    """
    max_tokens = MAX_TOKENS if device_type == "cpu" else _MAX_TOKENS_ON_GPU
    first = longest = 0
    for number, length in enumerate(lengths):
        longest = max(longest, length)
        in_batch = number - first
        if in_batch and (in_batch == batch_size or longest * (in_batch + 1) > max_tokens):
            yield slice(first, number)
            first, longest = number, length
    if first < len(lengths):
        yield slice(first, len(lengths))


def sentence_groups(sentences: Iterable[Sentence], batch_size: int) -> Iterator[List[Sentence]]:
    """
    Divides a text into groups of 16 full batches, or fewer with 32,768 tokens. Each group is in
    memory and is written in one commit, so a kill loses at most one. Groups depend only on the text
    and `batch_size`, so a resumed run has the same batches.
    """
    max_items = BATCHES_AHEAD * batch_size
    return groups(sentences, lambda sentence: len(sentence[1]), max_items, _TOKENS_PER_GROUP)


def groups(
    items: Iterable[Item], size: Callable[[Item], int], max_items: Optional[int], min_size: int
) -> Iterator[List[Item]]:
    """Groups consecutive items. A group ends at `max_items` items or a total size of `min_size`."""
    group: List[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += size(item)
        if len(group) == max_items or total >= min_size:
            yield group
            group, total = [], 0
    if group:
        yield group


def _checked(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    for number, words in enumerate(sentences):
        is_list = not isinstance(words, str) and hasattr(words, "__len__")
        if not (is_list and all(isinstance(word, str) for word in words)):
            raise TypeError(
                f"Expected a list of strings as sentences[{number}], found {str(words)[:40]!r}. "
                "Split the text into words first, or give strings and a `tokenizer`."
            )
        yield words
