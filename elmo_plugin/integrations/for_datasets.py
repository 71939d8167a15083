from typing import TYPE_CHECKING, Dict, List, Optional, TypeVar, Union

import numpy

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.corpora.tokenizer import Tokenizer
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.embed import check_pool, embed_sentences, pooled

if TYPE_CHECKING:
    import datasets

    Data = TypeVar("Data", datasets.Dataset, datasets.DatasetDict, datasets.IterableDataset)


def embed_dataset(
    dataset: "Data",
    bilm: Optional[Bilm] = None,
    column: str = "tokens",
    layers: Union[str, List[int]] = "all",
    new_column: str = "elmo",
    batch_size: int = 1024,
    *,
    tokenizer: Optional[Union[str, Tokenizer]] = None,
    pool: Optional[str] = None,
) -> "Data":
    """
    Adds vectors to a data set of the library `datasets`.

    `column` holds a list of words in each row or, with a `tokenizer`, a string. `new_column` gets a
    list of float32 vectors in each row, one per token, or with `pool` one vector (see `pooled`):
    the mean of `layers`, which are `all`, `last`, or numbers (0 is the token layer). `bilm`
    defaults to `load_bilm()`. `Dataset.map` writes the vectors to its cache on disk, so only
    `batch_size` rows are in memory at a time. For errors see `embed_sentences`.
    """
    bilm = bilm or load_bilm()
    chosen = chosen_layers(layers, bilm.num_layers)
    check_pool(pool)

    def embed(batch: Dict[str, list]) -> Dict[str, List[numpy.ndarray]]:
        embedded = embed_sentences(bilm, batch[column], tokenizer=tokenizer, layers=chosen)
        vectors = (each.float().mean(dim=0) for each in embedded)
        return {new_column: [(pooled(each, pool) if pool else each).numpy() for each in vectors]}

    return dataset.map(embed, batched=True, batch_size=batch_size)
