"""
`allennlp find-lr`, also for experiments with the trainer `elmo-recoverable`: AllenNLP's own refuses
every trainer that is not registered as `gradient_descent`.
"""

from functools import wraps
from typing import Any

from allennlp.commands import find_learning_rate as allennlp_find_learning_rate
from allennlp.common import Params

from elmo_plugin.util.errors import ConfigurationError

_find_learning_rate_model = allennlp_find_learning_rate.find_learning_rate_model


@wraps(_find_learning_rate_model)
def find_learning_rate_model(params: Params, *args: Any, **kwargs: Any) -> None:
    params = params.duplicate()
    trainer = params.params.get("trainer")
    if trainer is None:
        raise ConfigurationError(
            "Expected an experiment with a `trainer`, whose optimizer is tried, found none."
        )
    if trainer.get("type") == "elmo-recoverable":
        # AllenNLP's trainer ignores `mixed_precision`, and the search writes no checkpoints.
        trainer["type"] = "gradient_descent"
        trainer.pop("checkpointer", None)
    _find_learning_rate_model(params, *args, **kwargs)


allennlp_find_learning_rate.find_learning_rate_model = find_learning_rate_model
