from typing import Any, Optional

from allennlp.models import Model

from elmo_plugin.util.errors import ConfigurationError


def require_labels(model: Model, labels: Optional[Any], expected: str) -> None:
    """
    Refuses to train a model on instances without labels. The error of AllenNLP's trainer names
    neither the task nor the missing labels.

    # Parameters

    model : `Model`
    labels : `Optional[Any]`
        The labels of a batch, or `None`.
    expected : `str`
        What the labels are and where a corpus has them, for the error.

    # Raises

    `ConfigurationError`
        If the model is training and `labels` is `None`.
    """
    if model.training and labels is None:
        raise ConfigurationError(
            f"{model.default_predictor}: expected {expected} for training, found instances "
            "without. Set `train_data_path` to a corpus that has them."
        )
