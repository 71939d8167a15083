from typing import Any, Optional

from allennlp.models import Model

from elmo_plugin.util.errors import ConfigurationError


def require_labels(model: Model, labels: Optional[Any], expected: str) -> None:
    """
    Refuses to train a model on instances without labels; AllenNLP's trainer names neither the task
    nor what is missing.

    # Parameters

    model : `Model`
    labels : `Optional[Any]`
        What there is to learn from.
    expected : `str`
        What that is and where a corpus has it, for the error.

    # Raises

    `ConfigurationError`
        If the model is training and there is nothing to learn from.
    """
    if model.training and labels is None:
        raise ConfigurationError(
            f"{model.default_predictor}: expected {expected} to learn from, found instances "
            "without. Set `train_data_path` to a corpus that has them."
        )
