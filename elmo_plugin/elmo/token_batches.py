from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

# Tokens in a batch, including padding; a longer sentence is a batch of its own.
MAX_TOKENS = 8192
# Of a group of sentences.
_BATCHES_PER_GROUP = 16
_TOKENS_PER_GROUP = 32_768

#: The number of a line, and its words.
Sentence = Tuple[int, Tuple[str, ...]]


def token_batches(lengths: Sequence[int], batch_size: Optional[int] = None) -> Iterator[slice]:
    """
    Divides sentences of these lengths into batches of at most `batch_size` sentences and at most
    8,192 tokens with padding, or of one longer sentence.
    """
    first = longest = 0
    for number, length in enumerate(lengths):
        longest = max(longest, length)
        in_batch = number - first
        if in_batch and (in_batch == batch_size or longest * (in_batch + 1) > MAX_TOKENS):
            yield slice(first, number)
            first, longest = number, length
    if first < len(lengths):
        yield slice(first, len(lengths))


def sentence_groups(sentences: Iterable[Sentence], batch_size: int) -> Iterator[List[Sentence]]:
    """
    Divides a text into the groups between two commits: of 16 batches, or fewer if they have 32,768
    tokens. A kill loses the work on one group, whose vectors are in memory. Groups depend on the
    text and `batch_size` only, so that work that is resumed has the same batches.
    """
    group: List[Sentence] = []
    num_tokens = 0
    for line_number, words in sentences:
        group.append((line_number, words))
        num_tokens += len(words)
        if len(group) == _BATCHES_PER_GROUP * batch_size or num_tokens >= _TOKENS_PER_GROUP:
            yield group
            group, num_tokens = [], 0
    if group:
        yield group
