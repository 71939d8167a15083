from typing import Iterator, Optional, Sequence

# Tokens in a batch, including padding; a longer sentence is a batch of its own.
MAX_TOKENS = 8192


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
