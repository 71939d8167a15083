from typing import Iterator, Optional, Sequence

# Padded tokens in a batch; a longer sentence is read alone.
MAX_TOKENS = 8192


def token_batches(lengths: Sequence[int], batch_size: Optional[int] = None) -> Iterator[slice]:
    """
    Cuts sentences into batches that bound the memory of reading them.

    # Parameters

    lengths : `Sequence[int]`
        Tokens of each sentence. Sorted ones give the least padding.
    batch_size : `Optional[int]`, optional (default = `None`)
        Sentences per batch at most.

    # Returns

    `Iterator[slice]`
        Each of at most 8,192 tokens, padding included, or of one sentence.
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
