"""
AllenNLP's `regularizer` and `no_grad`, but a regex that matches no parameter, and so would have no
effect, is an error. AllenNLP constructs both by name: importing this module replaces its methods.
"""

import re
from functools import wraps
from textwrap import shorten
from typing import Any, Iterable, Sequence, Type

import torch
from allennlp.nn import RegularizerApplicator
from allennlp.training import GradientDescentTrainer, Trainer

from elmo_plugin.util.errors import ConfigurationError

_penalty = RegularizerApplicator.__call__
_construct = GradientDescentTrainer.from_partial_objects.__func__


def check_regexes(setting: str, regexes: Iterable[str], names: Sequence[str]) -> None:
    """
    Raises `ConfigurationError` if one of the regexes of a setting matches none of the parameters.
    """
    for regex in regexes:
        if not any(re.search(regex, name) for name in names):
            theirs = "scalar_parameters" in regex
            raise ConfigurationError(
                f"`{setting}`: {regex!r} matches no parameter and would have no effect."
                f"{' Here they are called layer_scores.' if theirs else ''} The parameters are "
                f"{shorten(', '.join(names), 600, placeholder=' ...')}."
            )


@wraps(_penalty)
def penalty(applicator: RegularizerApplicator, module: torch.nn.Module) -> torch.Tensor:
    if not hasattr(applicator, "is_checked"):
        # Frozen parameters are not penalised.
        trained = [n for n, parameter in module.named_parameters() if parameter.requires_grad]
        check_regexes("regularizer", (regex for regex, _ in applicator._regularizers), trained)
        applicator.is_checked = True
    return _penalty(applicator, module)


@wraps(_construct)
def from_partial_objects(cls: Type[Trainer], **settings: Any) -> Trainer:
    names = [name for name, _ in settings["model"].named_parameters()]
    check_regexes("no_grad", settings.get("no_grad") or (), names)
    return _construct(cls, **settings)


RegularizerApplicator.__call__ = penalty
GradientDescentTrainer.from_partial_objects = classmethod(from_partial_objects)
