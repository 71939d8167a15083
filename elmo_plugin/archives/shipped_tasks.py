from typing import Any, Dict, Union

from allennlp.predictors import Predictor

from elmo_plugin.archives.load import load_predictor
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resources import shipped_archives


def load_task(
    name: str, cuda_device: int = -1, overrides: Union[str, Dict[str, Any]] = ""
) -> Predictor:
    """
    A trained model that comes with the package, to predict with.

    # Parameters

    name : `str`
        The name of a folder in `pretrained/tasks`, which has its model card.
    cuda_device : `int`, optional (default = `-1`)
        Number of the GPU, -1 for the CPU.
    overrides : `Union[str, Dict[str, Any]]`, optional (default = `""`)
        Overrides of settings, in AllenNLP's form: `{"model.dtype": "bfloat16"}`.

    # Raises

    `ConfigurationError`
        If there is no such model.

    # Examples

        predictor = elmo_plugin.load_task("ner")
        print(predictor.predict_json({"sentence": "Ada Lovelace lived in London."})["entities"])
    """
    archives = shipped_archives()
    if name not in archives:
        raise ConfigurationError(
            f"Expected the name of a task ({', '.join(archives)}), found {name!r}. For a "
            "model of your own, use elmo_plugin.load_predictor."
        )
    return load_predictor(archives[name], cuda_device, overrides)
