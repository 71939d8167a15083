from typing import TYPE_CHECKING, Dict, List, Optional, TypeVar, Union

import numpy

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.embed import embed_sentences

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
) -> "Data":
    """
    Adds token vectors to a data set of the library `datasets`.

    `column` holds a list of words in each row. `new_column` gets a list of float32 vectors in each
    row: the mean of `layers`, which are `all`, `last`, or numbers (0 is the token layer). `bilm`
    defaults to `load_bilm()`. `Dataset.map` writes the vectors to its cache on disk, so only
    `batch_size` rows are in memory at a time. Raises `TypeError` if a row is not a list of words,
    and `ConfigurationError` if the biLM does not have these `layers`.
    """
    bilm = bilm or load_bilm()
    chosen = chosen_layers(layers, bilm.num_layers)

    def embed(batch: Dict[str, list]) -> Dict[str, List[numpy.ndarray]]:
        embedded = embed_sentences(bilm, batch[column])
        return {new_column: [each[chosen].float().mean(dim=0).numpy() for each in embedded]}

    return dataset.map(embed, batched=True, batch_size=batch_size)
