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
    Adds vectors of tokens to a data set of the library `datasets`, of whatever kind, by its `map`,
    which writes them to a cache on disk: memory grows with the batch only.

    # Parameters

    bilm : `Optional[Bilm]`, optional (default = `None`)
        By default what `load_bilm` returns without arguments.
    column : `str`, optional (default = `"tokens"`)
        The column that has a list of words in each row.
    layers : `Union[str, List[int]]`, optional (default = `"all"`)
        The layers to average: `all`, `last`, or numbers; 0 is the token layer.
    new_column : `str`, optional (default = `"elmo"`)
        The column to add: in each row a list of vectors in float32.
    batch_size : `int`, optional (default = `1024`)
        Rows that are in memory at a time.

    # Raises

    `TypeError`
        If a row of the column is not a list of words.
    `ConfigurationError`
        If the layers are not those of the biLM.
    """
    bilm = bilm or load_bilm()
    chosen = chosen_layers(layers, bilm.num_layers)

    def embed(batch: Dict[str, list]) -> Dict[str, List[numpy.ndarray]]:
        embedded = embed_sentences(bilm, batch[column])
        return {new_column: [each[chosen].float().mean(dim=0).numpy() for each in embedded]}

    return dataset.map(embed, batched=True, batch_size=batch_size)
