"""
`allennlp train`, as AllenNLP has it, but a process that `torchrun` has started trains together with
the other processes of `torchrun`.
"""

from functools import wraps
from typing import Any, Optional

from allennlp.commands import train as allennlp_train
from allennlp.models import Model

from elmo_plugin.training.torchrun import train_under_torchrun
from elmo_plugin.util.torchrun import torchrun_ranks

_train_model = allennlp_train.train_model


@wraps(_train_model)
def train_model(*args: Any, **kwargs: Any) -> Optional[Model]:
    ranks = torchrun_ranks()
    if ranks is None:
        return _train_model(*args, **kwargs)
    train_under_torchrun(ranks, *args, **kwargs)
    return None


allennlp_train.train_model = train_model
