from functools import partial
from typing import Iterable, Iterator, List, Optional, Sequence, Sized, Union

import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.corpora.tokenizer import Tokenizer, tokenizer_of
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.token_batches import map_in_batches
from elmo_plugin.util import progress as progress_bar
from elmo_plugin.util.errors import check_one_of, excerpt
from elmo_plugin.util.text_files import POOLS


def embed_sentences(
    bilm: Bilm,
    sentences: Iterable[Sequence[str]],
    batch_size: int = 64,
    tokenizer: Optional[Union[str, Tokenizer]] = None,
    *,
    layers: Union[str, List[int]] = "all",
    pool: Optional[str] = None,
    progress: bool = False,
) -> Iterator[torch.Tensor]:
    """
    Computes the layers of a biLM for sentences, in batches of at most `batch_size`. A sentence is a
    list of words or, with a `tokenizer`, a string. `tokenizer` is a code such as `en` or `de` (see
    `tokenizer_of`), or a function from a string to a list of words.

    Yields one tensor per sentence, in order, on the CPU: shape
    `(num_layers, num_tokens, output_dim)`, or `(num_layers, output_dim)` with `pool`. A sentence
    may be empty. At most `16 * batch_size` sentences and their layers are in memory.

    # Parameters

    layers : `Union[str, List[int]]`
        `all`, `last`, or numbers in the wanted order; 0 is the token layer. One layer is also a
        list, so the first dimension of the results stays.
    pool : `Optional[str]`
        One vector per sentence and layer instead of one per token: `mean`, `max` or `first_last`,
        see `pooled`.
    progress : `bool`
        Whether to show on standard error how many sentences are done.

    # Raises

    `ValueError` if `batch_size` is below 1; `TypeError` if a sentence is not a list of strings, or
    not a string if there is a `tokenizer`; `ConfigurationError` for a language without a tokenizer,
    other `layers` than the biLM has, or another `pool`. The message names the sentence or setting.

    # Examples

        from elmo_plugin import embed_sentences, load_bilm
        bilm = load_bilm("options.json", "weights.hdf5")
        for layers in embed_sentences(bilm, [["The", "play", "began"], ["They", "play"]]):
            print(layers.mean(dim=0))
        for layers in embed_sentences(bilm, ["They play chess."], tokenizer="en"):
            print(layers.shape)  # (num_layers, 4, output_dim)
        (vectors,) = embed_sentences(bilm, [["They", "play"]], layers=[1, 2], pool="mean")
        print(vectors.shape)  # (2, output_dim)
    """
    chosen = chosen_layers(layers, bilm.num_layers)
    check_pool(pool)
    total = len(sentences) if isinstance(sentences, Sized) else None
    if tokenizer is not None:
        split = tokenizer_of(tokenizer) if isinstance(tokenizer, str) else tokenizer
        sentences = _tokenised(sentences, split)
    # A stateful biLM must read the sentences in the given order.
    is_sorted, device_type = not bilm.stateful, bilm.options_json.device.type
    embed = partial(_embed_batch, bilm, chosen, pool)
    embedded = map_in_batches(embed, sentences, batch_size, is_sorted, device_type)
    return _with_progress(embedded, total) if progress else embedded


def check_pool(pool: Optional[str]) -> None:
    """Raises `ConfigurationError` if there is no such `pool`."""
    if pool is not None:
        check_one_of(POOLS, pool=pool)


def pooled(vectors: torch.Tensor, pool: str) -> torch.Tensor:
    """
    Returns one vector per sentence: shape `(…, dim)` from the tokens' `(…, num_tokens, dim)`, zeros
    if there are no tokens. `mean` and `max` are over the tokens. `first_last` concatenates the
    forward half of the last token's vector and the backward half of the first one's: in the LSTM
    layers, the states that have read the whole sentence.
    """
    if not vectors.size(-2):
        return vectors.new_zeros(vectors.shape[:-2] + vectors.shape[-1:])
    if pool == "first_last":
        half = vectors.size(-1) // 2
        return torch.cat([vectors[..., -1, :half], vectors[..., 0, half:]], dim=-1)
    return vectors.mean(dim=-2) if pool == "mean" else vectors.amax(dim=-2)


def _with_progress(
    embedded: Iterable[torch.Tensor], total: Optional[int]
) -> Iterator[torch.Tensor]:
    with progress_bar.progress("sentences", total) as advance:
        for each in embedded:
            yield each
            advance(1)


def _tokenised(sentences: Iterable[object], split: Tokenizer) -> Iterator[Sequence[str]]:
    if isinstance(sentences, str):
        raise TypeError(f"Expected a list of sentences, found the string {excerpt(sentences)!r}.")
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise TypeError(
                f"Expected a string as sentences[{number}], because there is a `tokenizer`, found "
                f"{str(sentence)[:40]!r}. Leave out `tokenizer` for lists of words."
            )
        yield split(sentence)


def _embed_batch(
    bilm: Bilm, chosen: List[int], pool: Optional[str], sentences: List[Sequence[str]]
) -> List[torch.Tensor]:
    ids = bilm.characters.batch_ids(sentences).to(bilm.options_json.device)
    with torch.inference_mode():
        layers = bilm(ids).layers
        if chosen != list(range(len(layers))):
            layers = layers[chosen]
        layers = layers.cpu()
        of_sentences = [layers[:, row, 1 : len(words) + 1] for row, words in enumerate(sentences)]
        return [pooled(each, pool) if pool else each.clone() for each in of_sentences]
