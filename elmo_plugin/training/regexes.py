"""
AllenNLP's `regularizer` and `no_grad`, but a regex that matches no parameter, and so would have no
effect, is an error. AllenNLP constructs both by name: importing this module replaces its methods.
"""

import re
from functools import wraps
from typing import Any, Iterable, Type

import torch
from allennlp.nn import RegularizerApplicator
from allennlp.training import GradientDescentTrainer, Trainer

from elmo_plugin.util.errors import ConfigurationError

_penalty = RegularizerApplicator.__call__
_construct = GradientDescentTrainer.from_partial_objects.__func__


def check_regexes(setting: str, regexes: Iterable[str], model: torch.nn.Module) -> None:
    """
    Raises `ConfigurationError` if one of the regexes of a setting matches no parameter of a model.
    """
    names = [name for name, _ in model.named_parameters()]
    for regex in regexes:
        if not any(re.search(regex, name) for name in names):
            theirs = "scalar_parameters" in regex
            raise ConfigurationError(
                f"`{setting}`: {regex!r} matches no parameter of the model and would have no "
                f"effect.{' Here they are called layer_scores.' if theirs else ''} The parameters "
                f"are {', '.join(names)}."
            )


@wraps(_penalty)
def penalty(applicator: RegularizerApplicator, module: torch.nn.Module) -> torch.Tensor:
    if not hasattr(applicator, "is_checked"):
        check_regexes("regularizer", (regex for regex, _ in applicator._regularizers), module)
        applicator.is_checked = True
    return _penalty(applicator, module)


@wraps(_construct)
def from_partial_objects(cls: Type[Trainer], **settings: Any) -> Trainer:
    check_regexes("no_grad", settings.get("no_grad") or (), settings["model"])
    return _construct(cls, **settings)


RegularizerApplicator.__call__ = penalty
GradientDescentTrainer.from_partial_objects = classmethod(from_partial_objects)
